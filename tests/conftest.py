"""Shared fixtures: small scenes that train in a second or two."""

from __future__ import annotations

import os

import numpy as np
import pytest
import torch
from hypothesis import settings
from threadpoolctl import threadpool_limits

from thonecls.datasets import Dataset, synthetic
from thonecls.method.config import TrainConfig

# Small arrays: more threads only wait for each other, here and in the programs that tests start.
# The variable is for those, and for libraries that are not loaded yet.
os.environ["OMP_NUM_THREADS"] = "1"
torch.set_num_threads(1)
threadpool_limits(1)
settings.register_profile("thonecls", deadline=None, max_examples=50, derandomize=True)
settings.load_profile("thonecls")

TINY = TrainConfig(
    epochs=2, batches=3, unlabeled=60, width=0.25, rate=1e-3, rate_decay=1.0, device="cpu"
)


def pytest_addoption(parser: pytest.Parser) -> None:
    """The option that runs what learns more than once."""
    parser.addoption("--seeds", type=int, default=1, help="seeds of every test of learning")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A test of learning takes `seed` and runs with each of 0, 1 and so on."""
    if metafunc.definition.get_closest_marker("learning"):
        metafunc.parametrize("seed", range(metafunc.config.getoption("seeds")))


@pytest.fixture(scope="session")
def tiny() -> TrainConfig:
    return TINY


@pytest.fixture(scope="session")
def field_scene() -> Dataset:
    return synthetic(height=21, width=18, bands=6, seed=3)


@pytest.fixture
def generator() -> torch.Generator:
    return torch.Generator().manual_seed(0)


@pytest.fixture(scope="session")
def few_positives(field_scene: Dataset) -> np.ndarray[tuple[int, int], np.dtype[np.bool_]]:
    """A mask of 12 labelled pixels of class 1."""
    mask = np.zeros(field_scene.scene.shape, dtype=bool)
    mask.flat[np.flatnonzero(field_scene.truth == 1)[::5][:12]] = True
    return mask
