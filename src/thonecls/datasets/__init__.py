"""Scenes with ground truth, ready to use: a real one and a made one, both offline."""

from __future__ import annotations

from thonecls.datasets.dataset import Dataset
from thonecls.datasets.indian_pines import indian_pines
from thonecls.datasets.synthetic import synthetic

__all__ = ["Dataset", "indian_pines", "synthetic"]
