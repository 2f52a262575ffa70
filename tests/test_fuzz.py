"""Spoilt files, a few for every reader: an error of ours or a result, nothing else."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fuzz import try_one

CASES = {  # without NetCDF, whose library a spoilt file can end the process in
    **{"raster": 25, "hdf5": 20, "envi": 30, "arrays": 60, "table": 60, "vector": 30},
    **{"model": 40, "run": 40},
}
# Seeds that once gave a traceback, a hang, or a map of NaN.
ONCE: dict[str, list[int]] = {}


@pytest.mark.parametrize("reader", CASES)
def test_a_spoilt_file_is_read_or_refused(reader: str) -> None:
    for seed in ONCE.get(reader, []):
        try_one(reader, seed)

    @settings(max_examples=CASES[reader])
    @given(st.integers(0, 2**32))
    def fuzz(seed: int) -> None:
        try_one(reader, seed)

    fuzz()


def test_most_spoilt_tables_are_refused_and_some_are_taken() -> None:
    """Else the readers would be tried with nothing but files that are good, or hopeless."""
    taken = [try_one("table", seed) for seed in range(40)]
    assert 3 <= sum(taken) <= 37
