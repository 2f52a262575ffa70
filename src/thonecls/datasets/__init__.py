"""Scenes with ground truth: two that need no download, and others from files that one has."""

from __future__ import annotations

from thonecls.datasets.dataset import Dataset
from thonecls.datasets.houston import houston_crop
from thonecls.datasets.indian_pines import indian_pines
from thonecls.datasets.potsdam import enmap_potsdam
from thonecls.datasets.synthetic import synthetic

__all__ = ["Dataset", "enmap_potsdam", "houston_crop", "indian_pines", "synthetic"]
