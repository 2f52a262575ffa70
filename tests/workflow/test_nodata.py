"""Labels and pixels to judge by are those that have data."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from crashing import CONFIG
from thonecls.datasets import Dataset
from thonecls.io.grid import Grid
from thonecls.io.inputs import LabelInput, SceneInput
from thonecls.io.options import SceneOptions
from thonecls.places import lattice
from thonecls.scene import ArraySource, Scene
from thonecls.workflow import RunSummary, TrainOptions, check_scene, train_scene
from thonecls.workflow.spectra import judged_at, read_lattice, sample_spectra, valid_at
from thonecls.workflow.train import on_data

FILL = -9999
pytestmark = pytest.mark.usefixtures("white_pictures")


def train(here: Path, cube: NDArray[np.float32], mask: NDArray[np.bool_], folds: int) -> RunSummary:
    """A matched filter of an array whose fill is no data; the summary of its run."""
    np.save(here / "cube.npy", cube)
    np.save(here / "labels.npy", mask)
    return train_scene(
        here / "cube.npy",
        here / "labels.npy",
        here / "run",
        config=CONFIG,
        options=TrainOptions(method="matched-filter", folds=folds),
        scene_options=SceneOptions(nodata=FILL),
    )


@pytest.fixture(autouse=True, scope="module")
def one_opinion() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("thonecls.workflow.crossfit.OPINIONS", ("matched-filter",))
        yield


def test_labels_on_nodata_are_dropped_before_any_is_left_out(
    field_scene: Dataset, tmp_path: Path
) -> None:
    """Four of five: one is left, and none can be spared."""
    labelled = np.flatnonzero(field_scene.truth == 1)[::7][:5]
    mask = np.zeros(field_scene.truth.shape, bool)
    mask.flat[labelled] = True
    cube = field_scene.scene.cube.copy()
    cube.reshape(len(cube), -1)[:, labelled[1:]] = FILL
    summary = train(tmp_path, cube, mask, folds=2)
    assert (summary.positives, summary.held_out) == (1, 0)
    assert "4 labelled pixels lie on nodata and are left out" in summary.notes
    assert not summary.problems


def test_where_labels_lie_is_told_of_those_on_data_as_training_will(tmp_path: Path) -> None:
    """Labels all over, but for those in the upper half, which has no data."""
    cube = np.random.default_rng(0).normal(size=(3, 160, 160)).astype(np.float32)
    mask = np.zeros((160, 160), bool)
    mask[5::20, 5::20] = True
    told = []
    for fill in (False, True):
        cube[:, :80] = FILL if fill else cube[:, :80]
        np.save(tmp_path / "cube.npy", cube)
        np.save(tmp_path / "labels.npy", mask)
        found = check_scene(
            tmp_path / "cube.npy",
            tmp_path / "labels.npy",
            scene_options=SceneOptions(nodata=FILL),
        )
        told.append({one.subject: one.status for one in found.findings}["where labels lie"])
    assert told == ["ok", "note"]


def test_what_is_known_of_a_pixel_without_data_is_of_no_use_whichever_way() -> None:
    cube = np.random.default_rng(0).normal(size=(2, 90, 150)).astype(np.float32)
    masks = [np.random.default_rng(n).random((90, 150)) < 0.01 for n in range(4)]
    cube[:, masks[3]] = FILL
    source = ArraySource(cube, nodata=FILL)
    scene = SceneInput(Path("scene.npy"), source, Grid((90, 150)))
    labels = on_data(scene, LabelInput(Path("l.npy"), masks[0], (), masks[1], masks[2]))
    found = (labels.mask, labels.negatives, labels.answers)
    for given, kept in zip(masks, found, strict=False):
        np.testing.assert_array_equal(kept, given & ~masks[3])
    np.testing.assert_array_equal(valid_at(source, ~masks[0]), ~masks[0] & ~masks[3])


@pytest.mark.parametrize("together", [True, False])
def test_few_valid_pixels_of_many_are_found(together: bool) -> None:
    """150 of 360,000, in a patch or scattered."""
    valid = np.zeros((600, 600), bool)
    if together:
        valid[302:312, 401:416] = True
    else:
        valid.flat[np.random.default_rng(0).choice(valid.size, 150, replace=False)] = True
    scene = Scene(np.ones((2, 600, 600), np.float32), valid)
    rows, columns = judged_at(scene)
    assert read_lattice(scene, rows, columns).valid.sum() >= (150 if together else 100)
    assert len(sample_spectra(scene, 5000, np.random.default_rng(0))) >= (150 if together else 20)


def test_where_data_are_common_the_lattice_is_even() -> None:
    scene = Scene(np.ones((2, 450, 600), np.float32), np.ones((450, 600), bool))
    for found, even in zip(judged_at(scene), lattice((450, 600)), strict=True):
        np.testing.assert_array_equal(found, even)


def test_a_map_of_a_few_pixels_that_an_even_lattice_misses_is_judged(tmp_path: Path) -> None:
    shape = (410, 410)
    rows, columns = (np.setdiff1d(np.arange(410), line) for line in lattice(shape))
    rng = np.random.default_rng(0)
    cube = np.full((4, *shape), FILL, np.float32)
    at = np.ix_(rows[100:108], columns[100:108])
    values = rng.normal(size=(4, 8, 8)).astype(np.float32)
    values[:, :, :3] += 4
    for band, part in zip(cube, values, strict=True):
        band[at] = part
    mask = np.zeros(shape, bool)
    mask[np.ix_(rows[100:108], columns[100:103])] = True
    summary = train(tmp_path, cube, mask, folds=0)
    assert not summary.problems
    assert summary.verdict
