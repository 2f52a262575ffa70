"""Scenes with ground truth: two that need no download, and others from files that one has."""

from __future__ import annotations

from thonecls.datasets.catalogue import DATASETS, Spec
from thonecls.datasets.example import Example, write_example
from thonecls.datasets.loading import (
    Dataset,
    data_root,
    download,
    houston_crop,
    how_to_get,
    indian_pines,
    is_present,
    load_dataset,
)
from thonecls.datasets.synthetic import synthetic

__all__ = [
    "DATASETS",
    "Dataset",
    "Example",
    "Spec",
    "data_root",
    "download",
    "houston_crop",
    "how_to_get",
    "indian_pines",
    "is_present",
    "load_dataset",
    "synthetic",
    "write_example",
]
