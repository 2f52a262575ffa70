"""Maps as people open them: COGs in colour, polygons with area, and a picture to look at."""

from __future__ import annotations

from thonecls.maps.cogs import disk_errors, scene_grid, write_geometry
from thonecls.maps.layers import MAP, PROBABILITY, LayerWriter, MapWriter
from thonecls.maps.measure import Measure
from thonecls.maps.polygons import write_polygons
from thonecls.maps.quicklook import (
    Backdrop,
    Marks,
    draw_map,
    name_bands,
    rgb_bands,
    write_quicklook,
)
from thonecls.maps.styles import Kind, write_qml

__all__ = [
    "MAP",
    "PROBABILITY",
    "Backdrop",
    "Kind",
    "LayerWriter",
    "MapWriter",
    "Marks",
    "Measure",
    "disk_errors",
    "draw_map",
    "name_bands",
    "rgb_bands",
    "scene_grid",
    "write_geometry",
    "write_polygons",
    "write_qml",
    "write_quicklook",
]
