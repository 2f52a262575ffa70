"""A look at the plugin from inside QGIS: run by QGIS's own Python, not by pytest.

    python3 in_qgis.py PLUGINS SCENE LABELS RUN FOLDER

PLUGINS: the folder that holds thonecls_qgis. RUN: the folder of a training. Prints one JSON object;
`test_in_qgis.py` says what it must hold.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from qgis.core import (
    QgsApplication,
    QgsFeature,
    QgsGeometry,
    QgsProcessingContext,
    QgsProcessingException,
    QgsProcessingFeatureSourceDefinition,
    QgsProcessingFeedback,
    QgsProcessingModelAlgorithm,
    QgsProcessingModelChildAlgorithm,
    QgsProcessingModelChildParameterSource,
    QgsProcessingModelParameter,
    QgsProcessingParameterRasterLayer,
    QgsProject,
    QgsRasterLayer,
    QgsVectorLayer,
)
from qgis.gui import QgsMessageBar
from qgis.PyQt.QtWidgets import QPushButton


class Heard(QgsProcessingFeedback):  # type: ignore[misc]
    """Keeps what it is told."""

    def __init__(self) -> None:
        super().__init__(False)
        self.steps: list[float] = []
        self.words: list[str] = []
        self.progressChanged.connect(self.steps.append)

    def pushInfo(self, words: str, fatal: bool = False) -> None:  # noqa: N802
        self.words.append(words)

    pushWarning = reportError = setProgressText = pushInfo  # noqa: N815


class Impatient(Heard):
    """Cancels when the program is about to start."""

    cancelled = 0.0

    def pushCommandInfo(self, info: str) -> None:  # noqa: N802
        self.cancelled = time.monotonic()
        self.cancel()


def main(plugins: str, scene: str, labels: str, run: str, folder: str) -> dict[str, Any]:
    sys.path[:0] = ["/usr/share/qgis/python/plugins", plugins]
    application = QgsApplication([], True)  # with widgets, for the message with its button
    application.initQgis()
    import processing
    from processing.core.Processing import Processing

    Processing.initialize()
    from thonecls_qgis import classFactory

    plugin = classFactory(None)
    plugin.initProcessing()
    found: dict[str, Any] = {"torch": "torch" in sys.modules, "thonecls": "thonecls" in sys.modules}
    found["algorithms"] = sorted(alg.name() for alg in plugin.provider.algorithms())

    def run_algorithm(name: str, feedback: Any = None, **given: Any) -> Any:
        context = QgsProcessingContext()
        context.setProject(QgsProject.instance())
        feedback = feedback or Heard()
        return processing.run(
            f"thonecls:{name}", given, feedback=feedback, context=context
        ), context

    found |= miss_thonecls(plugin)
    found |= check_layers(run_algorithm, scene, labels)
    found |= map_and_load(run_algorithm, scene, run, Path(folder))
    found |= model(scene, run, Path(folder))
    found |= cancel(run_algorithm, scene, labels, Path(folder))
    plugin.unload()
    return found


def miss_thonecls(plugin: Any) -> dict[str, Any]:
    """What is said, and offered to be clicked, where thonecls is not installed."""
    known = {name: os.environ.pop(name) for name in ("THONECLS_PYTHON", "PATH")}
    bar = QgsMessageBar()
    plugin.iface = SimpleNamespace(messageBar=lambda: bar)
    plugin.offer()
    buttons = [button.text() for button in bar.findChildren(QPushButton) if button.text()]
    words = plugin.provider.warningMessage()
    os.environ.update(known)
    return {"missing": words, "buttons": buttons, "there": plugin.provider.warningMessage()}


def check_layers(run_algorithm: Any, scene: str, labels: str) -> dict[str, Any]:
    """How many features `check` sees of layers that are selected from, edited, or in memory."""

    def seen(layer: Any, **given: Any) -> str:
        heard = Heard()
        run_algorithm("check", heard, SCENE=scene, LABELS=layer, **given)
        return next(words for words in heard.words if words.startswith("labels: "))

    stored = QgsVectorLayer(labels, "stored", "ogr")
    stored.selectByExpression("\"species\" = 'lantana' AND $id <= 30")
    QgsProject.instance().addMapLayer(stored)
    selected = QgsProcessingFeatureSourceDefinition(stored.id(), selectedFeaturesOnly=True)
    found = {"selected": seen(selected), "selected count": stored.selectedFeatureCount()}

    memory = QgsVectorLayer("Point?crs=EPSG:4326&field=code:integer", "in memory", "memory")
    features = []
    for number, old in enumerate(stored.getFeatures("\"species\" = 'lantana'")):
        new = QgsFeature(memory.fields())
        new.setGeometry(old.geometry())
        new.setAttributes([3 if number < 40 else 4])
        features.append(new)
    memory.dataProvider().addFeatures(features)
    memory.startEditing()
    spare = QgsFeature(memory.fields())
    spare.setGeometry(QgsGeometry(features[50].geometry()))
    spare.setAttributes([3])
    memory.addFeature(spare)
    found["edited"] = seen(memory, FIELD="code", VALUE="3")
    memory.rollBack()
    heard = Heard()
    wrong = {"SCENE": scene, "LABELS": memory, "FIELD": "code"}
    for number, value in enumerate((None, "three")):
        try:
            run_algorithm("check", heard, **wrong, VALUE=value)
        except QgsProcessingException as error:
            found[f"wrong {number}"] = [str(error), *heard.words]
    return found


def map_and_load(run_algorithm: Any, scene: str, run: str, folder: Path) -> dict[str, Any]:
    """What `map` makes, what is to be loaded, and how it looks when it is."""
    heard = Heard()
    made, context = run_algorithm("map", heard, RUN=run, SCENE=scene, OUTPUT=str(folder / "map ä"))
    found: dict[str, Any] = {"made": made, "steps": heard.steps, "told": heard.words, "loaded": {}}
    for path, details in context.layersToLoadOnCompletion().items():
        kind = "raster" if path.endswith(".tif") else "vector"
        layer = (QgsRasterLayer if kind == "raster" else QgsVectorLayer)(path, details.name)
        details.postProcessor().postProcessLayer(layer, context, heard)
        found["loaded"][Path(path).name] = [details.name, layer.renderer().type()]
    points, _ = run_algorithm("sample", RUN=run, SIZE=12, POINTS=str(folder / "points.gpkg"))
    found["points"] = QgsVectorLayer(points["POINTS"], "points", "ogr").featureCount()
    return found


def model(scene: str, run: str, folder: Path) -> dict[str, Any]:
    """A model in which another algorithm counts the pixels of the map that ours has made."""
    chain = QgsProcessingModelAlgorithm("map and count", "tests")
    chain.addModelParameter(
        QgsProcessingParameterRasterLayer("SCENE", "scene"), QgsProcessingModelParameter("SCENE")
    )
    source = QgsProcessingModelChildParameterSource
    given = {
        "thonecls:map": {
            "SCENE": source.fromModelParameter("SCENE"),
            "RUN": source.fromStaticValue(run),
            "OUTPUT": source.fromStaticValue(str(folder / "in a model")),
        },
        "native:rasterlayeruniquevaluesreport": {
            "INPUT": source.fromChildOutput("thonecls:map", "MAP"),
            "BAND": source.fromStaticValue(1),
        },
    }
    for name, parameters in given.items():
        child = QgsProcessingModelChildAlgorithm(name)
        child.setChildId(name)
        for parameter, value in parameters.items():
            child.addParameterSources(parameter, [value])
        chain.addChildAlgorithm(child)
    context, heard = QgsProcessingContext(), Heard()
    context.setProject(QgsProject.instance())
    made, well = chain.run({"SCENE": scene}, context, heard)
    counted = made["CHILD_RESULTS"]["native:rasterlayeruniquevaluesreport"]["TOTAL_PIXEL_COUNT"]
    return {"model": well, "counted": counted}


def cancel(run_algorithm: Any, scene: str, labels: str, folder: Path) -> dict[str, Any]:
    """How long a training of hours goes on after it is cancelled."""
    heard = Impatient()
    made, _ = run_algorithm(
        "train",
        heard,
        SCENE=scene,
        LABELS=labels,
        FIELD="species",
        VALUE="lantana",
        METHOD="t-honecls",
        EXTRA="--epochs 100000",
        OUTPUT=str(folder / "cancelled"),
    )
    return {"after cancel": time.monotonic() - heard.cancelled, "cancelled": made}


if __name__ == "__main__":
    print(json.dumps(main(*sys.argv[1:])))
