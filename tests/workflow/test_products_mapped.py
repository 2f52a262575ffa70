"""Products as they are delivered, by check, train and map, without a conversion."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import rasterio
from pyproj import CRS

from commands import run
from products import PRODUCTS, Made


@pytest.fixture(autouse=True, scope="module")
def one_opinion() -> Iterator[None]:
    """A matched filter alone beside every training: what others say is not the subject here."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("thonecls.workflow.crossfit.OPINIONS", ("matched-filter",))
        yield


@pytest.mark.parametrize("name", PRODUCTS)
def test_a_product_is_checked_trained_on_and_mapped(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = PRODUCTS[name](tmp_path)
    assert run("check", made.scene, made.labels, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["fit"], found
    out = tmp_path / "run"
    assert run("train", made.scene, made.labels, "--out", out, "--folds", "2", "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert "problems" not in told, told
    again = tmp_path / "again"
    assert run("map", out, made.scene, "--out", again, "--json") == 0
    for folder in (out, again):
        check_map(folder, made)


def check_map(folder: Path, made: Made) -> None:
    shape, transform, code = made.grid
    with rasterio.open(folder / "map.tif") as file:
        mapped = file.read(1)
        assert CRS.from_wkt(file.crs.to_wkt()).to_epsg() == code
        assert file.transform.almost_equals(transform, 1e-6)
    assert mapped.shape == shape
    assert set(np.unique(mapped)) == {0, 1, 255}
