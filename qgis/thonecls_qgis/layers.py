# SPDX-License-Identifier: GPL-2.0-or-later
"""Layers as files that thonecls reads, and files of thonecls as layers in their colours."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from qgis.core import (
    QgsCoordinateTransformContext,
    QgsEditorWidgetSetup,
    QgsFeature,
    QgsFeatureSink,
    QgsFields,
    QgsFillSymbol,
    QgsLayerTree,
    QgsMarkerSymbol,
    QgsProcessingContext,
    QgsProcessingException,
    QgsProcessingFeatureSourceDefinition,
    QgsProcessingLayerPostProcessorInterface,
    QgsProviderRegistry,
    QgsRasterLayer,
    QgsSingleSymbolRenderer,
    QgsVectorFileWriter,
    QgsVectorLayer,
)
from qgis.PyQt.QtCore import QVariant

from .commands import File, subdataset

COLOUR = "#d94801"  # of outlines and points, on any picture
PRESENT = "present"  # the field that people answer in
SIMPLE = (
    QVariant.Int,
    QVariant.UInt,
    QVariant.LongLong,
    QVariant.ULongLong,
    QVariant.Double,
    QVariant.String,
    QVariant.Bool,
    QVariant.Date,
    QVariant.DateTime,
)


def raster_file(layer: Any) -> File:
    """The file behind a raster layer, and which of its cubes."""
    if layer is None:
        raise QgsProcessingException("the scene cannot be opened: check the layer or the path")
    if layer.providerType() != "gdal":
        raise QgsProcessingException(
            f"'{layer.name()}' is no file but a service ({layer.providerType()}): export it as a "
            "GeoTIFF, with its raw data, and take that"
        )
    return subdataset(layer.source().split("|")[0])


def as_it_is(layer: Any, definition: Any) -> File | None:
    """The file behind a vector layer, where that holds exactly what is asked for; else None."""
    if isinstance(definition, QgsProcessingFeatureSourceDefinition) and (
        definition.selectedFeaturesOnly
        or definition.featureLimit >= 0
        or getattr(definition, "filterExpression", "")
    ):
        return None
    if layer is None or layer.providerType() != "ogr" or layer.subsetString():
        return None
    if layer.isEditable() and layer.isModified():
        return None
    parts = QgsProviderRegistry.instance().decodeUri("ogr", layer.source())
    path = parts.get("path") or ""
    if parts.get("vsiPrefix") or not Path(path).is_file():
        return None
    return File(path, parts.get("layerName") or None)


def export(source: Any, path: Path) -> File:
    """Write the features that a source gives, edits included, to a GeoPackage of one layer."""
    fields = QgsFields()
    kept = []
    for index, field in enumerate(source.fields()):
        if field.name().lower() != "fid" and field.type() in SIMPLE:  # the driver makes its own
            fields.append(field)
            kept.append(index)
    path.parent.mkdir(parents=True, exist_ok=True)
    options = QgsVectorFileWriter.SaveVectorOptions()
    options.driverName, options.layerName = "GPKG", path.stem
    writer = QgsVectorFileWriter.create(
        str(path),
        fields,
        source.wkbType(),
        source.sourceCrs(),
        QgsCoordinateTransformContext(),
        options,
    )
    count = 0
    for feature in source.getFeatures():
        new = QgsFeature(fields)
        new.setGeometry(feature.geometry())
        attributes = feature.attributes()
        new.setAttributes([attributes[index] for index in kept])
        if not writer.addFeature(new, QgsFeatureSink.FastInsert):
            break
        count += 1
    failed = writer.errorMessage() if writer.hasError() else ""
    del writer  # which closes the file
    if failed:
        raise QgsProcessingException(f"{path} cannot be written ({failed}): check the folder")
    if not count:
        raise QgsProcessingException(
            f"'{source.sourceName()}' gives no feature: check its selection and its filter"
        )
    return File(str(path))


class Style(QgsProcessingLayerPostProcessorInterface):
    """Gives a layer its looks when QGIS has loaded it."""

    kept: list[Style] = []  # noqa: RUF012  # QGIS holds no reference of its own

    @classmethod
    def of(cls, kind: str, *, below: bool = False) -> Style:
        """kind: raster, by the style beside the file; polygons; or points, with their form.

        below: the layer goes under all others of its folder.
        """
        style = cls()
        style.kind, style.below = kind, below
        cls.kept.append(style)
        return style

    def postProcessLayer(self, layer: Any, context: Any, feedback: Any) -> None:  # noqa: N802
        """As QGIS calls it."""
        dress(layer, self.kind)
        if self.below and context.project() is not None:
            lower(layer, context.project().layerTreeRoot())


def dress(layer: Any, kind: str) -> None:
    """Give a layer its looks: see `Style.of`."""
    if kind == "raster" and isinstance(layer, QgsRasterLayer):
        style = Path(layer.source()).with_suffix(".qml")
        if style.exists():
            layer.loadNamedStyle(str(style))
    elif isinstance(layer, QgsVectorLayer) and kind == "polygons":
        symbol = QgsFillSymbol.createSimple(
            {"style": "no", "outline_color": COLOUR, "outline_width": "0.5"}
        )
        layer.setRenderer(QgsSingleSymbolRenderer(symbol))
    elif isinstance(layer, QgsVectorLayer) and kind == "points":
        symbol = QgsMarkerSymbol.createSimple(
            {"name": "circle", "color": "255,255,255,0", "outline_color": COLOUR, "size": "3.4",
             "outline_width": "0.6"}
        )  # fmt: skip
        layer.setRenderer(QgsSingleSymbolRenderer(symbol))
        answers = {"map": [{"the class is here": "1"}, {"it is not": "0"}]}
        field = layer.fields().lookupField(PRESENT)
        if field >= 0:
            layer.setEditorWidgetSetup(field, QgsEditorWidgetSetup("ValueMap", answers))
    layer.triggerRepaint()


def lower(layer: Any, root: Any) -> None:
    """Move a layer under all others of its folder: QGIS lays each new one on top."""
    node = root.findLayer(layer.id())
    if node is None:
        return
    folder, parent = Path(layer.source()).parent, node.parent()
    last = max(
        number
        for number, other in enumerate(parent.children())
        if other is node
        or (
            QgsLayerTree.isLayer(other)
            and other.layer() is not None
            and Path(other.layer().source().split("|")[0]).parent == folder
        )
    )
    parent.insertChildNode(last + 1, node.clone())
    parent.removeChildNode(node)


def load(context: Any, path: Path, name: str, output: str, kind: str, order: int) -> None:
    """Have a result loaded when all is done, in its colours; higher orders lie on top, 0 below."""
    details = QgsProcessingContext.LayerDetails(name, context.project(), output)
    sorts = hasattr(details, "layerSortKey")  # QGIS 3.32
    details.setPostProcessor(Style.of(kind, below=order == 0 and not sorts))
    if sorts:
        details.layerSortKey = order
    context.addLayerToLoadOnCompletion(str(path), details)
