"""Scenes with ground truth: two that need no download, and others from files that one has."""

from __future__ import annotations

from thonecls.datasets.catalogue import DATASETS, Spec
from thonecls.datasets.dataset import Dataset
from thonecls.datasets.downloading import download
from thonecls.datasets.example import Example, write_example
from thonecls.datasets.loading import (
    data_root,
    enmap_potsdam,
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
    "enmap_potsdam",
    "houston_crop",
    "how_to_get",
    "indian_pines",
    "is_present",
    "load_dataset",
    "synthetic",
    "write_example",
]
