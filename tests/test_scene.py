"""Scenes: what is refused, how bands are found and standardised."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from thonecls.errors import SceneError
from thonecls.scene import as_scene, band_statistics, find_band_axis, standardize


@pytest.mark.parametrize(
    ("cube", "rule"),
    [
        (np.zeros((4, 4)), "three axes"),
        (np.zeros((1, 4, 4)), "at least 2 bands; got 1"),
        (np.zeros((3, 0, 4)), "at least one pixel"),
        (np.full((2, 3, 3), np.nan), "NaN or infinite values in 9 of 9 pixels"),
        (np.full((2, 3, 3), np.inf), "NaN or infinite"),
        (np.full((2, 3, 3), 1e300), "NaN or infinite"),
        (np.zeros((2, 3, 3), dtype=complex), "real numbers; got complex128"),
        (np.full((2, 3, 3), "a"), "real numbers"),
        (np.full((2, 3, 3), None), "real numbers; got object"),
    ],
)
def test_bad_cubes_are_refused(cube: NDArray[np.float64], rule: str) -> None:
    with pytest.raises(SceneError, match=rule):
        as_scene(cube)


def test_bands_last_is_turned_to_bands_first() -> None:
    cube = np.arange(24).reshape(2, 3, 4)
    scene = as_scene(cube, bands="last")
    assert scene.cube.shape == (4, 2, 3)
    assert scene.cube[3, 1, 2] == cube[1, 2, 3]
    assert scene.cube.dtype == np.float32
    assert scene.cube.flags.c_contiguous


def test_nan_is_accepted_where_it_is_nodata() -> None:
    cube = np.ones((2, 2, 2))
    cube[:, 0, 0] = np.nan
    valid = np.array([[False, True], [True, True]])
    assert as_scene(cube, valid=valid).valid.tolist() == valid.tolist()
    with pytest.raises(SceneError, match="no valid pixel"):
        as_scene(cube, valid=np.zeros((2, 2), dtype=bool))
    with pytest.raises(SceneError, match="valid has shape"):
        as_scene(cube, valid=np.ones((3, 2), dtype=bool))


@given(st.integers(2, 5), st.integers(1, 6), st.integers(1, 6), st.floats(-1e4, 1e4))
def test_standardised_bands_have_mean_zero_and_std_one(
    c: int, h: int, w: int, shift: float
) -> None:
    rng = np.random.default_rng(c + 10 * h + 100 * w)
    scene = as_scene(rng.normal(size=(c, h, w)) * 100 + shift)
    flat = standardize(scene, band_statistics(scene)).reshape(c, -1)
    np.testing.assert_allclose(flat.mean(axis=1), 0, atol=1e-2)
    if h * w > 1:
        np.testing.assert_allclose(flat.std(axis=1), 1, atol=1e-2)


@pytest.mark.parametrize("value", [0.0, 1e-20, 0.1, 12345.678, -3e7])
def test_a_constant_band_becomes_zero(value: float) -> None:
    rng = np.random.default_rng(0)
    scene = as_scene(np.stack([np.full((50, 50), value), rng.normal(size=(50, 50))]))
    assert (standardize(scene, band_statistics(scene))[0] == 0).all()


def test_statistics_leave_nodata_out() -> None:
    cube = np.zeros((2, 1, 3))
    cube[:, 0] = [1, 3, 1e6]
    scene = as_scene(cube, valid=np.array([[True, True, False]]))
    assert band_statistics(scene).mean.tolist() == [2, 2]
    assert standardize(scene, band_statistics(scene))[0].tolist() == [[-1, 1, 0]]


def test_the_band_axis_is_found_only_where_it_is_clear() -> None:
    assert find_band_axis((9, 9, 9), mask=(9, 9)) is None
    assert find_band_axis((5, 6, 7), mask=(1, 2)) is None
    assert find_band_axis((5, 6, 7), pairs=(5, 6)) == "first"
    assert find_band_axis((5, 6, 7), pairs=(4, 5)) is None
    assert find_band_axis((5, 6, 7), bands=7) == "last"
    assert find_band_axis((7, 6, 7), bands=7) is None
