# SPDX-License-Identifier: GPL-2.0-or-later
"""The algorithm that installs thonecls, in an environment in the user's profile."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from qgis.core import (
    QgsProcessingAlgorithm,
    QgsProcessingException,
    QgsProcessingOutputFile,
    QgsProcessingOutputString,
    QgsProcessingParameterBoolean,
    QgsProcessingParameterDefinition,
    QgsProcessingParameterFile,
    QgsProcessingParameterString,
)
from qgis.PyQt.QtGui import QIcon

from . import environment, settings
from .process import run

HELP = f"""<p>Installs the Python package thonecls, which does the work, with all it needs. It
gets an environment of its own, in your QGIS profile; QGIS's own Python stays as it is. The
download is large, mostly for torch.</p>
<h3>Folder of wheels</h3><p>To install without internet. On a computer with internet, the same
system and the same Python, <i>pip download thonecls -d wheels</i> fills one; put the wheel of
thonecls itself there too, if you built it.</p>
<h3>Without support of GPUs</h3><p>On Linux, much less is downloaded then. The density ratio, which
is the default, needs no GPU; networks are faster with one.</p>
<h3>What to install</h3><p>thonecls, thonecls==0.2.0, or the path of a wheel or of a checkout.</p>
<h3>Python</h3><p>{".".join(map(str, environment.NEEDED))} or newer; by default QGIS's own, if that
is new enough, or one that is found by its name.</p>"""


class Install(QgsProcessingAlgorithm):
    """Makes an environment and installs thonecls there."""

    def createInstance(self) -> Install:  # noqa: N802
        """As QGIS asks for each run."""
        return Install()

    def name(self) -> str:
        return "install"

    def displayName(self) -> str:  # noqa: N802
        return "Install thonecls"

    def group(self) -> str:
        return "Setup"

    def groupId(self) -> str:  # noqa: N802
        return "setup"

    def shortHelpString(self) -> str:  # noqa: N802
        return HELP

    def shortDescription(self) -> str:  # noqa: N802
        return "Install or update the Python package that does the work."

    def icon(self) -> Any:
        return QIcon(str(Path(__file__).with_name("icon.svg")))

    def initAlgorithm(self, configuration: Any = None) -> None:  # noqa: N802
        """Add parameters and outputs."""
        folder, file = QgsProcessingParameterFile.Folder, QgsProcessingParameterFile.File
        self.addParameter(
            QgsProcessingParameterFile(
                "WHEELS", "Folder of wheels, without internet", folder, optional=True
            )
        )
        package = QgsProcessingParameterString("PACKAGE", "What to install", environment.PACKAGE)
        python = QgsProcessingParameterFile("PYTHON", "Python", file, optional=True)
        for parameter in (package, python):
            parameter.setFlags(parameter.flags() | QgsProcessingParameterDefinition.FlagAdvanced)
            self.addParameter(parameter)
        self.addParameter(
            QgsProcessingParameterBoolean("UPGRADE", "Update what is installed already", False)
        )
        self.addParameter(QgsProcessingParameterBoolean("CPU", "Without support of GPUs", True))
        self.addOutput(QgsProcessingOutputFile("INSTALLED", "Python that has thonecls"))
        self.addOutput(QgsProcessingOutputString("VERSION", "Version of thonecls"))

    def processAlgorithm(self, parameters: Any, context: Any, feedback: Any) -> dict[str, Any]:  # noqa: N802
        """Install, and ask what was installed for its version."""
        given = self.parameterAsFile(parameters, "PYTHON", context)
        base = Path(given) if given else environment.find_python()
        if base is None:
            needed = ".".join(map(str, environment.NEEDED))
            raise QgsProcessingException(
                f"thonecls needs Python {needed} or newer, and none was found: install one from "
                "python.org or your system's packages, and name it at 'Python'"
            )
        feedback.pushInfo(f"Python: {base}")
        try:
            python = environment.install(
                base,
                settings.profile() / environment.FOLDER,
                package=self.parameterAsString(parameters, "PACKAGE", context),
                wheels=self.parameterAsFile(parameters, "WHEELS", context) or None,
                cpu=self.parameterAsBool(parameters, "CPU", context),
                upgrade=self.parameterAsBool(parameters, "UPGRADE", context),
                on_line=feedback.pushConsoleInfo,
                cancelled=feedback.isCanceled,
            )
        except (OSError, RuntimeError) as error:
            raise QgsProcessingException(f"thonecls was not installed: {error}") from error
        done = run(
            [*environment.launch(python), "--version"],
            environment=environment.beside_qgis(),
            on_line=feedback.pushConsoleInfo,
            cancelled=feedback.isCanceled,
        )
        if done.code != 0:
            raise QgsProcessingException(
                f"{python} has no thonecls that works: {' '.join(done.said[-2:])}"
            )
        feedback.pushInfo(f"thonecls {done.out.strip()} is installed: {python}")
        return {"INSTALLED": str(python), "VERSION": done.out.strip()}
