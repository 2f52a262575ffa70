"""Sentinel-2 L1C and L2A: SAFE folders with a JPEG 2000 file, or a GeoTIFF, for each band."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

from thonecls.errors import ConfigError, FileError
from thonecls.io.grid import Grid
from thonecls.io.raster.bands import Band, to_number
from thonecls.io.raster.files import Format
from thonecls.io.raster.products.gml import GmlMask
from thonecls.io.raster.products.metadata import find_all, read_xml, text_of
from thonecls.io.raster.products.quality import Flag, Product, flagged_file
from thonecls.io.raster.products.stack import Layer, layers_of, stack

# Bands in the order of the metadata, which number them from 0; wavelengths and widths in nm, where
# the metadata have none.
BANDS = {
    **{"B01": (442.7, 20.0), "B02": (492.7, 65.0), "B03": (559.8, 35.0), "B04": (664.6, 30.0)},
    **{"B05": (704.1, 14.0), "B06": (740.5, 14.0), "B07": (782.8, 19.0), "B08": (832.8, 105.0)},
    **{"B8A": (864.7, 21.0), "B09": (945.1, 19.0), "B10": (1373.5, 29.0), "B11": (1613.7, 90.0)},
    "B12": (2202.4, 174.0),
}
FILE = re.compile(r".*_(B\d\d|B8A)(?:_(\d\d)m)?\.(?:jp2|tiff?)", re.I)  # copies in clouds are COGs
SCL = re.compile(r".*_SCL_\d\dm\.(?:jp2|tiff?)", re.I)
CLOUDS = ("OPAQUE", "CIRRUS")  # in masks of GML
SIZES = (10, 20, 60)  # metres
NODATA = 0.0  # before the offset is added
CLASSES = (0, 1, 3, 8, 9, 10)  # no data, defective, cloud shadow, clouds (medium, high), cirrus


class Found(NamedTuple):
    """A band's file, and the size of its pixels in metres."""

    layer: Layer
    size: float


def sentinel2_product(folder: Path, variable: str | None, flagged: bool) -> Product | None:
    """The bands of a SAFE folder on one grid, of 10 m, or of what `variable` says (20m, 60m)."""
    levels = [name for name in ("L2A", "L1C") if (folder / f"MTD_MSI{name}.xml").is_file()]
    if not levels:
        _refuse_old(folder)
        return None
    level, root = levels[0], read_xml(folder / f"MTD_MSI{levels[0]}.xml")
    granules = sorted((folder / "GRANULE").glob("*/IMG_DATA"))
    if len(granules) != 1:
        raise FileError(
            f"{folder.name} holds {len(granules)} granules where one is expected: get the whole "
            "product again, or name the folder of one tile"
        )
    files = _band_files(granules[0], _size(variable))
    if not files:
        raise FileError(f"{granules[0]} holds no band (.jp2, .tif): get the whole product again")
    grid = _grid(files, _size(variable))
    cube = stack(folder, grid, [found.layer for found in files.values()], NODATA)
    quality = _quality(granules[0].parent, level, grid, flagged)
    words = [f"Sentinel-2 {level}, {len(files)} bands on a grid of {abs(grid.transform[0]):g} m"]
    if quality:
        named = "the scene classification" if level == "L2A" else quality[0][0].path.name
        words.append(f"no data where {named} shows clouds, or pixels that are defective")
    bands = _described(root, list(files), level)
    return Product((flagged_file(cube, quality), grid, bands), tuple(words))


def _refuse_old(folder: Path) -> None:
    """Products of before December 2016 hold many tiles, and name their files otherwise."""
    if (folder / "GRANULE").is_dir() and any(folder.glob("S2*_OPER_MTD_SAF*.xml")):
        raise FileError(
            f"{folder.name} is of the form of before December 2016, with many tiles: get the "
            "product of one tile, as the archive has it now"
        )


def _size(variable: str | None) -> int:
    if variable is None:
        return SIZES[0]
    found = re.fullmatch(r"R?(\d+)\s*m?", variable.strip(), re.I)
    if not found or int(found[1]) not in SIZES:
        raise ConfigError(
            f"'variable' of Sentinel-2 is the size of pixels, 10m, 20m or 60m. Got {variable!r} "
            "instead",
            options=("variable",),
        )
    return int(found[1])


def _band_files(images: Path, size: int) -> dict[str, Found]:
    """A file for each band: of the size that is asked for, else of the next finer, else the finest.

    L2A has some bands in several sizes.
    """
    found: dict[str, dict[int, Path]] = {}
    for path in sorted(images.rglob("*")):
        if match := FILE.fullmatch(path.name):
            found.setdefault(match[1].upper(), {})[int(match[2] or 0)] = path
    chosen = {}
    for name in (name for name in BANDS if name in found):
        sizes = found[name]
        finer = [s for s in sizes if s <= size]
        layer = layers_of(sizes[max(finer) if finer else min(sizes)])[0]
        chosen[name] = Found(layer, abs(layer.grid.transform[0]))
    return chosen


def _grid(files: dict[str, Found], size: int) -> Grid:
    """The grid of a size, from any band: all cover the same square."""
    some = min(files.values(), key=lambda found: abs(found.size - size)).layer.grid
    factor = size / abs(some.transform[0])
    a, b, c, d, e, f = some.transform[:6]
    rows, columns = (round(n / factor) for n in some.shape)
    return Grid((rows, columns), (a * factor, b, c, d, e * factor, f), some.crs)


def _described(root: ElementTree.Element, names: list[str], level: str) -> tuple[Band, ...]:
    kind = "BOA_QUANTIFICATION_VALUE" if level == "L2A" else "QUANTIFICATION_VALUE"
    quantity = to_number(text_of(root, kind)) or 1e4
    # Since processing baseline 04.00; 0 stays what it is: no data.
    offsets = {
        element.get("band_id"): to_number(element.text) or 0.0
        for element in find_all(root, "BOA_ADD_OFFSET" if level == "L2A" else "RADIO_ADD_OFFSET")
    }
    waves = dict(BANDS)
    for element in find_all(root, "Spectral_Information"):
        name = (element.get("physicalBand") or "").upper()
        name = name if len(name) == 3 else name.replace("B", "B0")
        low, high, central = (to_number(text_of(element, n)) for n in ("MIN", "MAX", "CENTRAL"))
        if name in waves and central:
            width = high - low if low and high else waves[name][1]
            waves[name] = central, width
    identity = {name: str(i) for i, name in enumerate(BANDS)}
    return tuple(
        Band(
            number=number,
            name=name,
            wavelength=waves[name][0],
            fwhm=waves[name][1],
            scale=1 / quantity,
            offset=offsets.get(identity[name], 0.0) / quantity,
            nodata=NODATA,
            bad=name == "B10",
            why="it sees cirrus, not the ground",
        )
        for number, name in enumerate(names, 1)
    )


def _quality(
    granule: Path, level: str, grid: Grid, flagged: bool
) -> list[tuple[Format, tuple[Flag, ...]]]:
    """The scene classification of L2A, or the cloud mask of L1C, where there is one."""
    if flagged:
        return []
    if level == "L2A":
        files = (granule / "IMG_DATA").rglob("*")
        found = sorted(path for path in files if SCL.fullmatch(path.name))  # the finest first
        flags: tuple[Flag, ...] = (Flag(1, values=CLASSES),)
    else:
        found = sorted((granule / "QI_DATA").glob("MSK_CLASSI_B00.jp2"))
        flags = (Flag(1, values=(1,)), Flag(2, values=(1,)))  # opaque clouds, cirrus
        old = sorted((granule / "QI_DATA").glob("*MSK_CLOUDS*B00*.gml"))
        if old and not found:
            return [(GmlMask(old[0], grid, CLOUDS), (Flag(1, values=(1,)),))]
    if not found:
        return []
    layers = layers_of(found[0])
    used = tuple(flag for flag in flags if flag.number <= len(layers))
    return [(stack(found[0], grid, layers), used)]
