"""Scenes with ground truth, ready to use: a real one and a made one, both offline."""

from __future__ import annotations

from collections.abc import Callable

from thonecls.datasets.dataset import Dataset
from thonecls.datasets.indian_pines import indian_pines
from thonecls.datasets.synthetic import synthetic

DATASETS: dict[str, Callable[[], Dataset]] = {
    "indian-pines": indian_pines,
    "synthetic": synthetic,
}

__all__ = ["DATASETS", "Dataset", "indian_pines", "synthetic"]
