"""Shared fixtures: small scenes that train in a second or two."""

from __future__ import annotations

import os
from base64 import b64decode
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
import pytest
import torch
from hypothesis import settings
from matplotlib.figure import Figure
from threadpoolctl import threadpool_limits

from thonecls.datasets import Dataset, Example, synthetic, write_example
from thonecls.method.config import TrainConfig

if TYPE_CHECKING:
    from serving import Client
    from thonecls.studio.session import Studio

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

SAVE_FIGURE = Figure.savefig
WHITE = b64decode(  # a PNG of one pixel
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGP4DwABAQEAsTj2FAAAAABJRU5ErkJggg=="
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


@pytest.fixture(scope="module")
def white_pictures() -> Iterator[None]:
    """Figures are made, but saved as one white pixel.

    Drawing them takes four times as long as all the rest of a small training; tests of reports
    and maps look at them.
    """

    def save(figure: Figure, file: BinaryIO, *, format: str, **_: Any) -> None:
        assert format == "png"
        assert figure.axes
        file.write(WHITE)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Figure, "savefig", save)
        yield


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """For a test that looks at pictures, in a module whose other pictures are white."""
    monkeypatch.setattr(Figure, "savefig", SAVE_FIGURE)


@pytest.fixture(scope="session")
def farmland(tmp_path_factory: pytest.TempPathFactory) -> Example:
    """A scene of 96 × 80 pixels with labels and truth, as files."""
    return write_example(tmp_path_factory.mktemp("farmland"))


@pytest.fixture(scope="session")
def smallholding(tmp_path_factory: pytest.TempPathFactory) -> Example:
    """The same of 56 × 48 pixels, for tests that train on it and are about something else."""
    return write_example(tmp_path_factory.mktemp("smallholding"), height=56, width=48)


@pytest.fixture
def one_opinion(monkeypatch: pytest.MonkeyPatch) -> None:
    """A matched filter alone beside a training: what others say is not the subject of the test."""
    monkeypatch.setattr("thonecls.workflow.crossfit.OPINIONS", ("matched-filter",))


@pytest.fixture(scope="session")
def served(
    farmland: Example, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Client, Studio]]:
    """A studio on it, for all tests that leave it as it was."""
    from serving import serving  # here: most tests need no server
    from thonecls.studio.project import open_project

    with serving(open_project(tmp_path_factory.mktemp("served") / "p", farmland.scene)) as found:
        yield found


@pytest.fixture
def client(served: tuple[Client, Studio]) -> Client:
    return served[0]
