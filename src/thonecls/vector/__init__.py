"""Labels from maps: vector layers, CSV coordinates and label rasters, onto a scene's pixels."""

from __future__ import annotations

from thonecls.vector.burning import UNKNOWN, Burnt, burn_positives, burn_truth
from thonecls.vector.label_rasters import LabelRaster, read_label_raster, read_labelled
from thonecls.vector.layers import (
    ENDINGS,
    columns_of,
    count_features,
    is_vector,
    read_layer,
)
from thonecls.vector.places import assign_crs
from thonecls.vector.points import PRESENT, Points, points_path, read_points, write_points

__all__ = [
    "ENDINGS",
    "PRESENT",
    "UNKNOWN",
    "Burnt",
    "LabelRaster",
    "Points",
    "assign_crs",
    "burn_positives",
    "burn_truth",
    "columns_of",
    "count_features",
    "is_vector",
    "points_path",
    "read_label_raster",
    "read_labelled",
    "read_layer",
    "read_points",
    "write_points",
]
