"""What a hand draws covers the pixels whose centres it covers."""

from __future__ import annotations

import numpy as np
import pytest
import shapely
from hypothesis import given
from hypothesis import strategies as st

from thonecls.errors import LabelError
from thonecls.studio.strokes import brush_pixels, lasso_pixels, listed_pixels

SHAPE = (20, 30)
CENTRES = np.stack(np.meshgrid(np.arange(30) + 0.5, np.arange(20) + 0.5), axis=2).reshape(-1, 2)
POINT = st.tuples(st.floats(-5, 35), st.floats(-5, 25))


def test_listed_pixels_are_counted_row_by_row() -> None:
    assert listed_pixels([(1, 2), (0, 29), (1, 2), (-1, 0), (20, 0)], SHAPE).tolist() == [29, 32]


def test_a_lasso_takes_the_pixels_whose_centres_it_covers() -> None:
    square = [(1.4, 2.4), (4.6, 2.4), (4.6, 3.6), (1.4, 3.6)]
    assert lasso_pixels(square, SHAPE).tolist() == [61, 62, 63, 64, 91, 92, 93, 94]


@given(path=st.lists(POINT, min_size=1, max_size=5), radius=st.floats(0.3, 6))
def test_a_brush_takes_all_that_is_well_within_and_nothing_well_without(
    path: list[tuple[float, float]], radius: float
) -> None:
    line = shapely.LineString(path) if len(path) > 1 else shapely.Point(path[0])
    away = shapely.distance(line, shapely.points(CENTRES))
    touched = {
        int(np.floor(y)) * 30 + int(np.floor(x)) for x, y in path if 0 <= x < 30 and 0 <= y < 20
    }
    well = set(np.flatnonzero(away < 0.99 * radius - 1e-6).tolist())
    if not (well | touched):
        return
    found = set(brush_pixels(path, radius, SHAPE).tolist())
    assert well | touched <= found
    assert all(away[p] <= 1.01 * radius + 1e-6 for p in found - touched)


def test_the_thinnest_brush_marks_the_pixel_that_it_is_on() -> None:
    assert brush_pixels([(3.9, 2.1)], 0.0, SHAPE).tolist() == [63]


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: lasso_pixels([(0, 0), (1, 1)], SHAPE), "3 corners"),
        (lambda: lasso_pixels([(40, 40), (50, 40), (50, 50)], SHAPE), "no pixel of the scene"),
        (lambda: lasso_pixels([(0, 0), (9e9, 0), (0, 9e9)], SHAPE), "in pixels"),
        (lambda: listed_pixels([(99, 99)], SHAPE), "no pixel of the scene"),
        (lambda: lasso_pixels([(0, 0), (9e3, 0), (9e3, 9e3), (0, 9e3)], (9000, 9000)), "at most"),
    ],
)
def test_what_cannot_be_labelled_is_said(call: object, words: str) -> None:
    assert callable(call)
    with pytest.raises(LabelError, match=words):
        call()
