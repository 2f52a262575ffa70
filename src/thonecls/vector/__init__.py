"""Labels from maps: vector layers, CSV coordinates and label rasters, onto a scene's pixels."""

from __future__ import annotations

from thonecls.vector.burning import UNKNOWN, Burnt, burn_positives, burn_truth
from thonecls.vector.label_rasters import LabelRaster, read_label_raster, read_labelled
from thonecls.vector.layers import ENDINGS, is_vector, read_layer

__all__ = [
    "ENDINGS",
    "UNKNOWN",
    "Burnt",
    "LabelRaster",
    "burn_positives",
    "burn_truth",
    "is_vector",
    "read_label_raster",
    "read_labelled",
    "read_layer",
]
