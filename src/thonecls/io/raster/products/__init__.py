"""Products as space agencies deliver them, each by a thin reader of its own."""

from __future__ import annotations

import re
from pathlib import Path

import h5py

from thonecls.errors import ConfigError
from thonecls.io.raster.hdf5 import hdf5_errors
from thonecls.io.raster.products.dlr import dlr_product
from thonecls.io.raster.products.emit import COMPANION, emit_product
from thonecls.io.raster.products.landsat import landsat_product
from thonecls.io.raster.products.prisma import prisma_product
from thonecls.io.raster.products.quality import Product
from thonecls.io.raster.products.sentinel2 import sentinel2_product

METADATA = re.compile(r"MTD_MSIL(1C|2A)\.xml|.+-METADATA\.xml|.+_MTL\.(txt|xml|json)", re.I)
IMAGE = re.compile(r".+-SPECTRAL_IMAGE(_COG)?\.(tiff?|geotiff|bsq|bil|bip|jp2|jpeg2000)", re.I)


def find_product(path: Path, variable: str | None, flagged: bool) -> Product | None:
    """The product that a path holds; None where it is none that has a reader of its own.

    path: a folder, the metadata in it, or a file. variable: the array of an HDF5 file, or the
    resolution of Sentinel-2; flagged: use also the pixels that its quality layers flag.
    """
    if path.is_file() and h5py.is_hdf5(path):
        with hdf5_errors(path):
            found = None if variable else prisma_product(path)
            return found or emit_product(path, variable, flagged)
    folder, scene = path, None
    if path.is_file() and (METADATA.fullmatch(path.name) or IMAGE.fullmatch(path.name)):
        folder, scene = path.parent, path.name
    if not folder.is_dir():
        return None
    if (found := sentinel2_product(folder, variable, flagged)) is not None:
        return found
    found = dlr_product(folder, scene, flagged) or landsat_product(folder, scene, flagged)
    if found is not None and variable is not None:
        raise ConfigError(
            f"{path.name} holds one scene: leave out 'variable'", options=("variable",)
        )
    return found


__all__ = ["COMPANION", "METADATA", "Product", "find_product"]
