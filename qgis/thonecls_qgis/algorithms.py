# SPDX-License-Identifier: GPL-2.0-or-later
"""The commands of thonecls as algorithms of Processing."""

from __future__ import annotations

import base64
import shlex
from pathlib import Path
from typing import Any

from qgis.core import (
    QgsProcessing,
    QgsProcessingAlgorithm,
    QgsProcessingException,
    QgsProcessingOutputBoolean,
    QgsProcessingOutputFile,
    QgsProcessingOutputHtml,
    QgsProcessingOutputNumber,
    QgsProcessingOutputRasterLayer,
    QgsProcessingOutputString,
    QgsProcessingOutputVectorLayer,
    QgsProcessingParameterBoolean,
    QgsProcessingParameterCrs,
    QgsProcessingParameterDefinition,
    QgsProcessingParameterEnum,
    QgsProcessingParameterFeatureSource,
    QgsProcessingParameterField,
    QgsProcessingParameterFile,
    QgsProcessingParameterFileDestination,
    QgsProcessingParameterFolderDestination,
    QgsProcessingParameterNumber,
    QgsProcessingParameterRasterLayer,
    QgsProcessingParameterString,
    QgsProcessingParameterVectorDestination,
    QgsProcessingUtils,
)
from qgis.PyQt.QtGui import QIcon

from . import environment, layers, settings
from .catalogue import CHECK, TRAIN, Command, Parameter
from .commands import (
    File,
    arguments,
    findings_page,
    help_page,
    reword,
    value_at,
    where_equal,
)
from .process import Bar, Done, failure_of, result_of, run

ICON = str(Path(__file__).with_name("icon.svg"))
OUTPUTS = {
    "raster": QgsProcessingOutputRasterLayer,
    "vector": QgsProcessingOutputVectorLayer,
    "file": QgsProcessingOutputFile,
    "page": QgsProcessingOutputHtml,
    "text": QgsProcessingOutputString,
    "number": QgsProcessingOutputNumber,
    "truth": QgsProcessingOutputBoolean,
}
FILES = ("raster", "vector", "file", "page")  # kinds of outputs that lie in the folder
LOADED = ("PROBABILITY", "MAP", "POLYGONS")  # from below


def definition(parameter: Parameter) -> Any:
    """A parameter in QGIS's terms."""
    name, label, optional = parameter.name, parameter.label, parameter.optional
    default, kind = parameter.default, parameter.kind
    made: Any
    if kind == "raster":
        made = QgsProcessingParameterRasterLayer(name, label, default, optional)
    elif kind == "vector":
        types = [QgsProcessing.TypeVectorAnyGeometry]
        made = QgsProcessingParameterFeatureSource(name, label, types, default, optional)
    elif kind == "run":
        made = QgsProcessingParameterFile(name, label, QgsProcessingParameterFile.Folder)
    elif kind == "field":
        made = QgsProcessingParameterField(
            name, label, default, parameter.parent, optional=optional
        )
    elif kind in ("number", "integer"):
        number = QgsProcessingParameterNumber
        made = number(name, label, number.Integer if kind == "integer" else number.Double,
                      default, optional)  # fmt: skip
        if parameter.minimum is not None:
            made.setMinimum(parameter.minimum)
        if parameter.maximum is not None:
            made.setMaximum(parameter.maximum)
    elif kind == "switch":
        made = QgsProcessingParameterBoolean(name, label, default)
    elif kind == "choice":
        made = QgsProcessingParameterEnum(
            name, label, list(parameter.choices), False, default, optional, True
        )
    elif kind == "crs":
        made = QgsProcessingParameterCrs(name, label, default, optional)
    elif kind == "folder-out":
        made = QgsProcessingParameterFolderDestination(name, label)
    elif kind == "points-out":
        made = QgsProcessingParameterVectorDestination(name, label, QgsProcessing.TypeVectorPoint)
    elif kind == "page-out":
        made = QgsProcessingParameterFileDestination(
            name, label, "HTML files (*.html)", None, optional, True
        )
    else:
        made = QgsProcessingParameterString(name, label, default, False, optional)
    made.setHelp(parameter.help)
    if parameter.advanced:
        made.setFlags(made.flags() | QgsProcessingParameterDefinition.FlagAdvanced)
    return made


class Algorithm(QgsProcessingAlgorithm):
    """A command of thonecls, run in its own Python."""

    def __init__(self, command: Command) -> None:
        super().__init__()
        self.command = command
        self.values: dict[str, Any] = {}
        self.page: str | None = None

    def createInstance(self) -> Algorithm:  # noqa: N802
        """As QGIS asks for each run."""
        return Algorithm(self.command)

    def name(self) -> str:
        return self.command.name

    def displayName(self) -> str:  # noqa: N802
        return self.command.title

    def group(self) -> str:
        return self.command.group

    def groupId(self) -> str:  # noqa: N802
        return self.command.group.lower().replace(" ", "-").strip("?")

    def shortDescription(self) -> str:  # noqa: N802
        return self.command.summary

    def shortHelpString(self) -> str:  # noqa: N802
        return help_page(self.command)

    def tags(self) -> list[str]:
        return ["hyperspectral", "one-class", "classification", "machine learning", "imagery"]

    def icon(self) -> Any:
        return QIcon(ICON)

    def canExecute(self) -> tuple[bool, str]:  # noqa: N802
        """Whether thonecls is there; else how to get it."""
        there = settings.program() is not None
        return there, "" if there else environment.MISSING

    def initAlgorithm(self, configuration: Any = None) -> None:  # noqa: N802
        """Add parameters and outputs, from the catalogue."""
        for parameter in self.command.parameters:
            self.addParameter(definition(parameter))
        for output in self.command.outputs:
            self.addOutput(OUTPUTS[output.kind](output.name, output.label))

    def checkParameterValues(self, parameters: Any, context: Any) -> tuple[bool, str]:  # noqa: N802
        """What QGIS checks, and that field and value come together."""
        if bool(parameters.get("FIELD")) != bool(parameters.get("VALUE")):
            return False, "Give both the field that names the class and its value, or neither."
        if parameters.get("FIELD") and parameters.get("WHERE"):
            return False, "Give field and value, or a filter: not both."
        return super().checkParameterValues(parameters, context)

    def prepareAlgorithm(self, parameters: Any, context: Any, feedback: Any) -> bool:  # noqa: N802
        """Read all values while layers may be asked: this runs where they live."""
        self.values = {
            parameter.name: self.value(parameter, parameters, context)
            for parameter in self.command.parameters
        }
        values = self.values
        if values.get("FIELD"):
            values["WHERE"] = self.filter(parameters, context)
            if self.command is TRAIN and not values.get("NAME"):
                values["NAME"] = values["VALUE"]
        scene = values.get("SCENE")
        if scene is not None and values.get("VARIABLE"):
            values["SCENE"] = File(scene.path)  # what is written counts
        return True

    def value(self, parameter: Parameter, parameters: Any, context: Any) -> Any:
        """A parameter's value in plain terms; None where none is given."""
        name, kind = parameter.name, parameter.kind
        if kind == "folder-out":
            return self.parameterAsString(parameters, name, context)
        if kind == "points-out":
            return self.parameterAsOutputLayer(parameters, name, context)
        if kind == "page-out":
            self.page = self.parameterAsFileOutput(parameters, name, context) or None
            return None
        if kind == "switch":
            return self.parameterAsBool(parameters, name, context)
        if kind == "choice":
            return self.parameterAsEnumString(parameters, name, context) or None
        given = parameters.get(name, parameter.default)
        if given is None or given == "":
            return None
        if kind == "raster":
            return layers.raster_file(self.parameterAsRasterLayer(parameters, name, context))
        if kind == "vector":
            return self.vector(parameter, parameters, context)
        if kind == "number":
            return self.parameterAsDouble(parameters, name, context)
        if kind == "integer":
            return self.parameterAsInt(parameters, name, context)
        if kind == "crs":
            crs = self.parameterAsCrs(parameters, name, context)
            return (crs.authid() or crs.toWkt()) if crs.isValid() else None
        if kind == "run":
            return self.parameterAsFile(parameters, name, context)
        return self.parameterAsString(parameters, name, context)

    def vector(self, parameter: Parameter, parameters: Any, context: Any) -> File:
        """A vector layer as a file: its own, or a new one of what is selected or edited.

        A new one lies in the folder of a training, which so keeps what it learnt from, and can be
        continued; of other commands in a temporary folder.
        """
        source = self.parameterAsSource(parameters, parameter.name, context)
        if source is None:
            raise QgsProcessingException(self.invalidSourceError(parameters, parameter.name))
        layer = self.parameterAsVectorLayer(parameters, parameter.name, context)
        found = layers.as_it_is(layer, parameters[parameter.name])
        if found is not None and (found.layer is None or parameter.layer_flag):
            return found
        name = f"{parameter.name.lower()}.gpkg"
        path = Path(QgsProcessingUtils.generateTempFilename(name))
        if self.command is TRAIN:
            path = Path(self.parameterAsString(parameters, "OUTPUT", context)) / name
        return layers.export(source, path)

    def filter(self, parameters: Any, context: Any) -> str:
        """The filter that field and value stand for."""
        source = self.parameterAsSource(parameters, "LABELS", context)
        field, value = self.values["FIELD"], self.values["VALUE"]
        index = source.fields().lookupField(field) if source is not None else -1
        if index < 0:
            raise QgsProcessingException(f"the labels have no field '{field}'")
        try:
            return where_equal(field, value, source.fields().at(index).isNumeric())
        except ValueError as error:
            raise QgsProcessingException(
                f"the field '{field}' holds numbers: '{value}' is none"
            ) from error

    def processAlgorithm(self, parameters: Any, context: Any, feedback: Any) -> dict[str, Any]:  # noqa: N802
        """Run the command and tell what it made."""
        words = arguments(self.command, self.values)
        picture = None
        if self.command is CHECK and self.page and self.values.get("LABELS"):
            picture = Path(QgsProcessingUtils.generateTempFilename("labels.png"))
            words.append(f"--picture={picture}")
        done = self.run_command(words, feedback)
        if done.cancelled:
            if any(parameter.name == "RESUME" for parameter in self.command.parameters):
                feedback.pushInfo("Cancelled. To go on, tick 'Continue what was cancelled'.")
            return {}
        told = result_of(done) or {}
        self.tell(told, feedback)
        if self.command is CHECK and self.page:
            drawn = picture is not None and picture.exists()
            image = base64.b64encode(picture.read_bytes()).decode() if picture and drawn else None
            Path(self.page).write_text(findings_page(told, image), "utf-8")
        feedback.setProgress(100)
        return self.results(told, context)

    def run_command(self, words: list[str], feedback: Any) -> Done:
        """Run thonecls; its errors become QGIS's."""
        program = settings.program()
        if program is None:
            raise QgsProcessingException(environment.MISSING)
        command = [*environment.launch(program), *words]
        feedback.pushCommandInfo(shlex.join(command))
        bar = Bar()

        def hear(line: str) -> None:
            told = bar.hear(line)
            feedback.setProgress(bar.percent)
            if told is not None:
                feedback.setProgressText(told)
            elif line.strip():
                feedback.pushDebugInfo(line)

        try:
            done = run(
                command,
                environment=environment.beside_qgis(),
                on_line=hear,
                cancelled=feedback.isCanceled,
            )
        except OSError as error:
            raise QgsProcessingException(
                f"{program} cannot be started ({error.strerror}). {environment.MISSING}"
            ) from error
        failure = None if done.cancelled else failure_of(done)
        if failure is not None:
            if "No module named" in failure and "thonecls" in failure:
                failure = f"{program} has no thonecls. {environment.MISSING}"
            elif "Unknown option" in failure and "--progress" in failure:
                failure = f"the thonecls of {program} is older than this plugin: update it"
            raise QgsProcessingException(reword(failure, self.command))
        return done

    def tell(self, told: dict[str, Any], feedback: Any) -> None:
        """Say what a person should know of the result."""
        for finding in told.get("findings", []):
            if finding["subject"] == "picture":  # stands on the page
                continue
            words = f"{finding['subject']}: {reword(finding['words'], self.command)}"
            if finding["status"] == "problem":
                feedback.reportError(words)
            elif finding["status"] == "note":
                feedback.pushWarning(words)
            else:
                feedback.pushInfo(words)
        for problem in (*told.get("problems", []), told.get("warning")):
            if problem:
                feedback.pushWarning(reword(problem, self.command))
        for keys in ("words", "verdict.words", "finding", "summary"):
            if said := value_at(told, keys):
                feedback.pushInfo(said)

    def results(self, told: dict[str, Any], context: Any) -> dict[str, Any]:
        """Outputs by name; layers of a folder are loaded, if that is wanted."""
        found: dict[str, Any] = {}
        folder = Path(self.values.get("OUTPUT") or self.values.get("RUN") or ".")
        for output in self.command.outputs:
            if output.kind not in FILES:
                value = value_at(told, output.source)
            else:
                value = str(folder / output.source) if (folder / output.source).exists() else None
            if value is not None:
                found[output.name] = value
        if self.values.get("OUTPUT"):
            found["OUTPUT"] = str(folder)
        if self.page and self.command is CHECK:
            found["FINDINGS"] = self.page
        if told.get("points"):
            found["POINTS"] = told["points"]
            self.load_points(told["points"], context)
        if self.values.get("LOAD") and context.project() is not None:
            self.load_layers(found, told.get("label") or folder.name, context)
        return found

    def load_layers(self, found: dict[str, Any], title: str, context: Any) -> None:
        """Have rasters and polygons of a folder loaded, in their colours."""
        for order, name in enumerate(LOADED):
            if name in found:
                kind = "polygons" if name == "POLYGONS" else "raster"
                label = f"{title}: {name.lower()}"
                layers.load(context, Path(found[name]), label, name, kind, order)

    def load_points(self, path: str, context: Any) -> None:
        """Give points their form and looks, where QGIS loads them."""
        asked = self.values["POINTS"]
        if not context.willLoadLayerOnCompletion(asked):
            return
        details = context.layerToLoadOnCompletionDetails(asked)
        details.setPostProcessor(layers.Style.of("points"))
        if path != asked:  # a scene without a place on Earth gets a table
            waiting = context.layersToLoadOnCompletion()
            waiting[path] = waiting.pop(asked)
            context.setLayersToLoadOnCompletion(waiting)
