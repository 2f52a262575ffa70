"""Several scenes as one source."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from thonecls.errors import SceneError
from thonecls.mosaic import GAP, find_corners, lay_out, window_at, windows_of
from thonecls.ratio.ratio import WIDE
from thonecls.ratio.ratio import windows_of as windows_looked_through
from thonecls.scene import Scene, as_scene, pooled_statistics, read_all


def scenes() -> list[Scene]:
    rng = np.random.default_rng(0)
    shapes = ((5, 7), (9, 4), (6, 6), (3, 12))
    return [as_scene(rng.normal(size=(3, *shape)).astype(np.float32)) for shape in shapes]


def test_each_scene_is_read_back_from_its_window() -> None:
    some = scenes()
    mosaic = lay_out(some)
    for scene, window in zip(some, mosaic.windows, strict=True):
        read = mosaic.read(*window)
        np.testing.assert_array_equal(read.cube, scene.cube)
        assert read.valid.all()


def test_what_lies_between_scenes_is_nodata_and_counts_in_no_statistic() -> None:
    some = scenes()
    whole = read_all(lay_out(some))
    assert whole.valid.sum() == sum(scene.valid.size for scene in some)
    one, other = pooled_statistics(some), pooled_statistics([whole])
    np.testing.assert_allclose(one.mean, other.mean, atol=1e-6)
    np.testing.assert_allclose(one.std, other.std, atol=1e-6)


@given(st.lists(st.tuples(st.integers(1, 60), st.integers(1, 60)), min_size=1, max_size=30))
def test_no_window_that_is_looked_through_holds_two_scenes(shapes: list[tuple[int, int]]) -> None:
    windows = [window_at(c, s) for c, s in zip(find_corners(shapes), shapes, strict=True)]
    for one, other in itertools.combinations(windows, 2):
        apart = [max(a.start - b.stop, b.start - a.stop) for a, b in zip(one, other, strict=True)]
        assert max(apart) >= GAP
    assert windows_looked_through(WIDE)[-1] // 2 < GAP


def test_a_window_across_a_gap_has_parts_of_both_scenes() -> None:
    mosaic = lay_out(scenes()[:2])
    rows, columns = mosaic.shape
    part = mosaic.read(slice(1, rows), slice(2, columns))
    np.testing.assert_array_equal(part.cube, read_all(mosaic).cube[:, 1:, 2:])


def test_scenes_of_other_bands_are_refused() -> None:
    with pytest.raises(SceneError, match=r"the same bands. Got \[2, 3\]"):
        lay_out([as_scene(np.zeros((2, 4, 4))), as_scene(np.zeros((3, 4, 4)))])


def test_a_single_scene_has_no_windows() -> None:
    assert windows_of(scenes()[0]) == ()
