"""Several scenes as one source."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from thonecls.errors import SceneError
from thonecls.mosaic import GAP, SPARSE, Place, find_corners, lay_out, window_at, windows_of
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


def cut(scene: Scene, rows: list[int], columns: list[int]) -> tuple[list[Scene], list[Place]]:
    """Tiles of a scene, the last one first, and where they lie."""
    tiles, places = [], []
    for down, across in itertools.product(itertools.pairwise(rows), itertools.pairwise(columns)):
        tiles.append(scene.read(slice(*down), slice(*across)))
        places.append(Place(0, down[0] - 1000, across[0] + 7))
    return tiles[::-1], places[::-1]


def test_tiles_beside_each_other_are_the_scene_that_they_were_cut_from() -> None:
    rng = np.random.default_rng(0)
    whole = as_scene(rng.normal(size=(3, 40, 50)).astype(np.float32))
    mosaic = lay_out(*cut(whole, [0, 13, 40], [0, 20, 21, 50]))
    assert mosaic.shape == whole.shape
    np.testing.assert_array_equal(read_all(mosaic).cube, whole.cube)
    assert read_all(mosaic).valid.all()
    assert windows_of(mosaic) == ()  # one site is judged as one scene


def test_what_is_missing_from_a_site_is_nodata() -> None:
    whole = as_scene(np.ones((2, 40, 50), np.float32))
    tiles, places = cut(whole, [0, 20, 40], [0, 25, 50])
    mosaic = lay_out(tiles[1:], places[1:])  # without the last
    assert mosaic.shape == whole.shape
    valid = read_all(mosaic).valid
    assert not valid[20:, 25:].any()
    assert valid.sum() == 1500


def test_sites_far_apart_are_laid_side_by_side_and_told_apart() -> None:
    one = as_scene(np.ones((2, 10, 10), np.float32))
    near, far = Place(0, 0, 10 + GAP - 1), Place(0, 0, 10 + GAP)
    assert len(windows_of(lay_out([one, one], [Place(0, 0, 0), near]))) == 0
    mosaic = lay_out([one, one, one], [Place(0, 0, 0), Place(0, 0, 500), Place(0, 10, 0)])
    assert mosaic.sites == [[0, 2], [1]]
    assert [(r.stop - r.start, c.stop - c.start) for r, c in windows_of(mosaic)] == [
        (20, 10),
        (10, 10),
    ]
    assert len(windows_of(lay_out([one, one], [Place(0, 0, 0), far]))) == 2
    assert len(windows_of(lay_out([one, one], [Place(0, 0, 0), Place(1, 0, 10)]))) == 2
    assert len(windows_of(lay_out([one, one]))) == 2


def test_dates_of_one_place_are_sites_of_their_own() -> None:
    one = as_scene(np.ones((2, 10, 10), np.float32))
    left, right = Place(0, 0, 0), Place(0, 0, 10)
    assert lay_out([one] * 4, [left, right, left, right]).sites == [[0, 1], [2, 3]]
    assert lay_out([one] * 2, [left, Place(0, 0, 9)]).sites == [[0], [1]]


def test_scenes_along_a_diagonal_take_little_more_room_than_they_have() -> None:
    one = as_scene(np.ones((2, 50, 50), np.float32))
    mosaic = lay_out([one] * 40, [Place(0, 50 * i, 50 * i) for i in range(40)])
    assert np.prod(mosaic.shape) < 3 * SPARSE * 40 * 50**2  # of 40² of them in one rectangle
    assert max(len(site) for site in mosaic.sites) == SPARSE


def test_a_scene_is_found_in_its_site_and_what_is_near_it_alone_is_kept() -> None:
    whole = as_scene(np.random.default_rng(1).normal(size=(2, 90, 30)).astype(np.float32))
    tiles, places = cut(whole, [0, 30, 60, 90], [0, 30])
    mosaic = lay_out([as_scene(np.ones((2, 5, 5), np.float32)), *tiles], [None, *places])
    assert mosaic.site_of(0) is None
    found = mosaic.site_of(1)
    assert found is not None
    site, corner = found
    assert corner == (60, 0)
    np.testing.assert_array_equal(read_all(site).cube, whole.cube)
    near = site.near(window_at(corner, (30, 30)), 8)
    assert (near.shape, len(near.sources)) == (site.shape, 2)
    window = slice(52, 90), slice(0, 30)
    np.testing.assert_array_equal(near.read(*window).cube, site.read(*window).cube)
