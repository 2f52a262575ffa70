# SPDX-License-Identifier: GPL-2.0-or-later
"""The provider of Processing: its algorithms, name and icon."""

from __future__ import annotations

from typing import Any

from qgis.core import QgsProcessingProvider
from qgis.PyQt.QtGui import QIcon

from . import environment, settings
from .algorithms import ICON, Algorithm
from .catalogue import COMMANDS
from .installing import Install


class Provider(QgsProcessingProvider):
    """thonecls in Processing's toolbox."""

    def load(self) -> bool:
        """Add the settings, then the algorithms."""
        settings.add(self.icon())
        self.refreshAlgorithms()
        return True

    def unload(self) -> None:
        """Take the settings away."""
        settings.remove()

    def loadAlgorithms(self) -> None:  # noqa: N802
        """As QGIS asks."""
        for command in COMMANDS:
            self.addAlgorithm(Algorithm(command))
        self.addAlgorithm(Install())

    def id(self) -> str:
        return "thonecls"

    def name(self) -> str:
        return "thonecls"

    def longName(self) -> str:  # noqa: N802
        return "thonecls: map one class in hyperspectral imagery"

    def icon(self) -> Any:
        return QIcon(ICON)

    def svgIconPath(self) -> str:  # noqa: N802
        return ICON

    def warningMessage(self) -> str:  # noqa: N802
        """Shown above the toolbox where thonecls is missing."""
        return "" if settings.program() is not None else environment.MISSING

    def supportsNonFileBasedOutput(self) -> bool:  # noqa: N802
        return False

    def defaultVectorFileExtension(self, hasGeometry: bool = True) -> str:  # noqa: N802, N803
        return "gpkg"

    def supportedOutputVectorLayerExtensions(self) -> list[str]:  # noqa: N802
        return ["gpkg"]
