"""What a person does in QGIS's window, for `pictures.py`: run by QGIS itself (`--code`)."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import processing
from qgis.core import (
    QgsContrastEnhancement,
    QgsMarkerSymbol,
    QgsMultiBandColorRenderer,
    QgsProject,
    QgsRasterLayer,
    QgsRasterMinMaxOrigin,
    QgsVectorLayer,
)
from qgis.PyQt.QtCore import QTimer
from qgis.PyQt.QtWidgets import QApplication, QDockWidget, QLineEdit, QTreeView
from qgis.utils import iface

FOLDER = Path(os.environ["PICTURES"])
PATIENCE = 300  # seconds


def add_layers() -> tuple[Any, Any]:
    """The scene in false colours, and the labels on it."""
    scene = QgsRasterLayer(str(FOLDER / "indian-pines.tif"), "indian-pines")
    scene.setRenderer(QgsMultiBandColorRenderer(scene.dataProvider(), 50, 27, 17))
    scene.setContrastEnhancement(
        QgsContrastEnhancement.StretchToMinimumMaximum, QgsRasterMinMaxOrigin.CumulativeCut
    )
    labels = QgsVectorLayer(str(FOLDER / "corn.gpkg"), "corn")
    symbol = {"name": "circle", "color": "white", "outline_color": "black", "size": "2"}
    labels.renderer().setSymbol(QgsMarkerSymbol.createSimple(symbol))
    QgsProject.instance().addMapLayers([labels, scene])
    return scene, labels


def arrange() -> None:
    """Layers at the left, the toolbox with our algorithms at the right."""
    window = iface.mainWindow()
    window.setGeometry(0, 0, 1280, 800)
    for dock in window.findChildren(QDockWidget):
        dock.setVisible(dock.objectName() in ("Layers", "ProcessingToolbox"))
    toolbox = window.findChild(QDockWidget, "ProcessingToolbox")
    toolbox.setMinimumWidth(270)
    toolbox.findChild(QLineEdit).setText("thonecls")
    toolbox.findChild(QTreeView).expandAll()


def shoot(window: Any, name: str) -> None:
    """A window as a picture."""
    settle(2)
    window.grab().save(str(FOLDER / name))


def settle(seconds: float) -> None:
    """Let the window do its work for a while."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        QApplication.processEvents()
        time.sleep(0.02)


def act() -> None:
    """Train on the labels by the form, and look at the result."""
    project = QgsProject.instance()
    scene, labels = add_layers()
    arrange()
    iface.mapCanvas().setExtent(scene.extent())
    settle(2)
    given = {
        "SCENE": scene.id(),
        "LABELS": labels.id(),
        "NAME": "corn",
    }
    form = processing.createAlgorithmDialog("thonecls:train", given)
    form.setGeometry(200, 60, 900, 690)
    form.show()
    shoot(form, "qgis-train.png")
    form.runAlgorithm()
    deadline = time.monotonic() + PATIENCE
    while len(project.mapLayers()) < 5 and time.monotonic() < deadline:
        settle(0.5)
    settle(1)
    form.close()
    iface.messageBar().clearWidgets()
    root = project.layerTreeRoot()
    for layer in project.mapLayers().values():
        if layer.name().endswith("probability"):
            root.findLayer(layer.id()).setItemVisibilityChecked(False)
    node = root.findLayer(labels.id())
    root.insertChildNode(0, node.clone())
    root.removeChildNode(node)
    iface.mapCanvas().setExtent(scene.extent())
    iface.mapCanvas().refreshAllLayers()
    for dock in iface.mainWindow().findChildren(QDockWidget):
        dock.setVisible(dock.objectName() in ("Layers", "ProcessingToolbox"))
    shoot(iface.mainWindow(), "qgis.png")
    os._exit(0)


QTimer.singleShot(4000, act)
