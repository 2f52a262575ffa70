"""Readers of products as they are delivered, on small files of the very form."""

from __future__ import annotations

import numpy as np
import pytest
from pyproj import CRS

from products import PRODUCTS, Made
from thonecls.io.raster import open_raster
from thonecls.scene import read_all


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Made]:
    return {name: make(tmp_path_factory.mktemp("product")) for name, make in PRODUCTS.items()}


@pytest.mark.parametrize("name", PRODUCTS)
def test_values_bands_and_place_are_those_of_the_product(made: dict[str, Made], name: str) -> None:
    product = made[name]
    source = open_raster(product.scene)
    scene = read_all(source)
    np.testing.assert_allclose(source.wavelengths or (), product.waves, atol=0.01)
    np.testing.assert_array_equal(scene.valid, np.isfinite(product.values).all(axis=0))
    np.testing.assert_allclose(
        scene.cube[:, scene.valid], product.values[:, scene.valid], atol=2e-5
    )
    shape, transform, code = product.grid
    assert source.grid.on_map.shape == shape
    assert source.grid.on_map.transform.almost_equals(transform, 1e-6)
    assert CRS.from_wkt(str(source.grid.on_map.crs)).to_epsg() == code
