"""Colours and names by which QGIS and GDAL show maps."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import matplotlib
import numpy as np
from matplotlib.colors import to_hex

from thonecls.files import write_atomically
from thonecls.maps.cogs import plain_text
from thonecls.report.plots import CLASS, QUIET
from thonecls.scene import NO_DATA

Kind = Literal["probability", "classes"]
RAMP = "viridis"
HOT, USUAL = "YlOrRd", "#c8c8c8"  # beyond a limit, and at it
RENDERER = {"band": "1", "opacity": "1", "alphaBand": "-1", "nodataColor": ""}


def write_qml(path: Path, kind: Kind, *, label: str = "class") -> Path:
    """A QGIS style beside a raster, with its stem, that QGIS takes up by itself.

    "probability": a continuous ramp from 0 to 1; "classes": the class in colour, the rest clear.
    """
    if kind == "classes":
        renderer = ElementTree.Element("rasterrenderer", RENDERER, type="paletted")
        entries = ElementTree.SubElement(renderer, "colorPalette")
        for value, colour, alpha, name in (
            (0, QUIET, 0, "other"),
            (1, CLASS, 255, plain_text(label)),
        ):
            about = {"value": str(value), "color": colour, "alpha": str(alpha), "label": name}
            ElementTree.SubElement(entries, "paletteEntry", about)
    else:
        renderer = _ramp([(value, f"{value:.1f}", colour) for value, colour in _even_stops(1.0)])
    return _write_style(path, renderer)


def write_layer_qml(
    path: Path, *, scale: float, limit: float | None = None, description: str = ""
) -> Path:
    """A QGIS style of a layer in steps of `scale`: a continuous ramp over what it can hold.

    limit: greys up to it and hot colours beyond, of equal steps by ratio. The description goes to
    the layer's notes.
    """
    top = scale * (NO_DATA - 1)
    if limit is None:
        stops = _even_stops(top)
    else:
        beyond = np.geomspace(limit + scale / 2, top, 9)  # no value lies between the two steps
        hot = matplotlib.colormaps[HOT](np.linspace(0.4, 1, len(beyond)))
        stops = [(0.0, QUIET), (limit, USUAL), *zip(beyond.tolist(), map(to_hex, hot), strict=True)]
    return _write_style(
        path, _ramp([(value, f"{value:.3g}", colour) for value, colour in stops]), description
    )


def _even_stops(top: float) -> list[tuple[float, str]]:
    """Values from 0 to `top`, and their colours."""
    shares = np.linspace(0, 1, 11)
    return [(share * top, to_hex(matplotlib.colormaps[RAMP](share))) for share in shares.tolist()]


def _ramp(stops: Sequence[tuple[float, str, str]]) -> ElementTree.Element:
    """A renderer that blends between stops: value, label and colour of each."""
    low, high = f"{stops[0][0]:.9g}", f"{stops[-1][0]:.9g}"
    renderer = ElementTree.Element(
        "rasterrenderer",
        RENDERER,
        type="singlebandpseudocolor",
        classificationMin=low,
        classificationMax=high,
    )
    shader = ElementTree.SubElement(
        ElementTree.SubElement(renderer, "rastershader"),
        "colorrampshader",
        colorRampType="INTERPOLATED",
        classificationMode="1",
        clip="0",
        minimumValue=low,
        maximumValue=high,
    )
    for value, label, colour in stops:
        about = {"value": f"{value:.9g}", "color": colour, "alpha": "255", "label": label}
        ElementTree.SubElement(shader, "item", about)
    return renderer


def _write_style(path: Path, renderer: ElementTree.Element, notes: str = "") -> Path:
    categories = "Symbology|Notes" if notes else "Symbology"
    root = ElementTree.Element("qgis", version="3.28", styleCategories=categories)
    ElementTree.SubElement(root, "pipe").append(renderer)
    if notes:
        ElementTree.SubElement(root, "userNotes", value=plain_text(notes))
    ElementTree.SubElement(root, "blendMode").text = "0"
    style = path.with_suffix(".qml")
    doctype = b"<!DOCTYPE qgis PUBLIC 'http://mrcc.com/qgis.dtd' 'SYSTEM'>\n"
    write_atomically(style, doctype + ElementTree.tostring(root, encoding="utf-8"))
    return style


def write_categories(path: Path, names: tuple[str, ...]) -> None:
    """The class names where GDAL looks for them: in a sidecar, for a TIFF has no place."""
    root = ElementTree.Element("PAMDataset")
    band = ElementTree.SubElement(root, "PAMRasterBand", band="1")
    categories = ElementTree.SubElement(band, "CategoryNames")
    for name in names:
        ElementTree.SubElement(categories, "Category").text = plain_text(name)
    write_atomically(path, ElementTree.tostring(root, encoding="utf-8"))
