"""Rasters as GDAL reads them, of several files too: their grid, what is said of their bands."""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary
from xml.sax.saxutils import escape

import numpy as np
import rasterio
import scipy
from numpy.typing import NDArray
from rasterio._err import CPLE_BaseError
from rasterio.dtypes import dtype_rev, typename_fwd
from rasterio.enums import ColorInterp, MaskFlags
from rasterio.errors import NotGeoreferencedWarning
from rasterio.windows import Window

from thonecls.errors import FileError, SceneError
from thonecls.io.drivers import open_raster_as, raster_drivers
from thonecls.io.grid import Grid
from thonecls.io.raster.bands import VECTORS, Band, in_nanometres, named_wavelength, to_number
from thonecls.io.raster.files import LazyFile, RasterHeader, choose_cube
from thonecls.scene import BoolArray
from thonecls.schema import MOST_BANDS

# GDAL would keep up to 5 % of the machine's memory of what it has read; windows are read once.
os.environ.setdefault("GDAL_CACHEMAX", "64")  # MB


@dataclass(frozen=True)
class Gdal:
    """Bands in a dataset of GDAL: a file, a part of one, or a virtual stack of files."""

    path: Path
    name: str
    alpha: int | None = None  # the band that is a mask

    def open(self) -> Any:
        return open_gdal(self.name, self.path)

    def read(
        self, dataset: Any, numbers: Sequence[int], rows: slice, columns: slice, step: int
    ) -> tuple[NDArray[Any], BoolArray | None]:
        window = Window.from_slices(rows, columns)
        shape = -(-window.height // step), -(-window.width // step)
        # Raw files are read by whole lines unless told: of a narrow window its own pixels will do.
        narrow = step == 1 and 2 * window.width < dataset.width
        with rasterio.Env(GDAL_ONE_BIG_READ="YES") if narrow else nullcontext():
            raw = dataset.read(list(numbers), window=window, out_shape=(len(numbers), *shape))
        if self.alpha is not None:
            return raw, dataset.read(self.alpha, window=window, out_shape=shape) > 0
        if numbers[0] in _masked(dataset):
            return raw, dataset.read_masks(numbers[0], window=window, out_shape=shape) > 0
        return raw, None


_MASKED: WeakKeyDictionary[Any, frozenset[int]] = WeakKeyDictionary()


def _masked(dataset: Any) -> frozenset[int]:
    """The bands whose mask is the dataset's own; asked once, as all bands are gone through."""
    if dataset not in _MASKED:
        flags = enumerate(dataset.mask_flag_enums, start=1)
        _MASKED[dataset] = frozenset(n for n, f in flags if MaskFlags.per_dataset in f)
    return _MASKED[dataset]


def open_gdal(name: str, path: Path) -> Any:
    """GDAL's dataset of that name; `path` is what an error calls it."""
    with _header_errors(path), warnings.catch_warnings():
        warnings.simplefilter("ignore", NotGeoreferencedWarning)  # it need not lie on Earth
        # A folder's own stack is the one description that is not read from a file.
        drivers = ["VRT"] if name.startswith("<VRTDataset") else raster_drivers(path)
        dataset = open_raster_as(name, drivers)
        if dataset.driver == "netCDF" and dataset.transform.is_identity:
            with dataset, rasterio.Env(GDAL_NETCDF_BOTTOMUP="NO"):  # else turned upside down
                return open_raster_as(name, drivers)
        return dataset


@contextmanager
def _header_errors(path: Path) -> Iterator[None]:
    """What is wrong with the header of a file, as an error that says what to do."""
    try:
        yield
    except (OSError, CPLE_BaseError) as e:
        raise FileError(
            f"cannot open {path} ({e}): it must be a whole raster file that GDAL reads; an ENVI "
            "file needs its .hdr beside it"
        ) from e
    except UnicodeDecodeError as e:
        raise FileError(
            f"cannot open {path} ({e}): the text in its header must be UTF-8; save it so"
        ) from e


def gdal_header(path: Path, name: str) -> RasterHeader:
    """What the header of a GDAL dataset says; `path` is the file it is in."""
    with open_gdal(name, path) as dataset, _header_errors(path):
        check_whole(dataset, path)
        bands = _bands(dataset, path)
        alpha = next((band.number for band in bands if band.alpha), None)
        return LazyFile(Gdal(path, name, alpha)), _grid(dataset), bands


def subdataset_name(path: Path, names: Sequence[str], variable: str | None) -> str:
    """GDAL's name of the one cube in a file, or of the one asked for."""
    cubes, shapes = {}, {}
    for name in names:
        with open_gdal(name, path) as part:
            if part.count > 1:
                key = name.rsplit(":", 1)[-1].strip("/")
                cubes[key], shapes[key] = name, (part.count, *part.shape)
    return cubes[choose_cube(path, shapes, variable)]


def check_netcdf3(path: Path) -> None:
    """Refuse a NetCDF 3 file with a header that is not sound, before GDAL sees it.

    A short file is read as zeros, and one with a spoilt header can end the whole process.
    """
    with path.open("rb") as file:
        magic = file.read(4)
    if magic not in (b"CDF\x01", b"CDF\x02"):
        return
    try:
        scipy.io.netcdf_file(path, mmap=True).close()
    except Exception as e:  # a damaged file can fail anywhere inside a foreign parser
        words = str(e)[:100] or type(e).__name__
        raise FileError(f"{path} is cut short or damaged ({words}): copy it again") from e


def check_whole(dataset: Any, path: Path) -> None:
    """Refuse a file shorter than its header says, of the forms in which GDAL reads on as zeros."""
    tags = dataset.tags(ns="ENVI")
    if dataset.driver != "ENVI" or tags.get("file_compression", "0") != "0":
        return
    pixels = dataset.count * dataset.height * dataset.width
    offset = tags.get("header_offset", "0").strip()
    if not (offset.isdecimal() and len(offset) < 20):
        raise FileError(
            f"the header of {path} says 'header offset = {offset[:40]}', where a number of bytes "
            "is needed: correct it, 0 if the data begin at once"
        )
    needed = int(offset) + pixels * np.dtype(dataset.dtypes[0]).itemsize
    if (size := path.stat().st_size) < needed:
        raise FileError(
            f"{path} has {size:,} bytes where its header says {needed:,}: it is cut short, or the "
            "header is not its own; copy it again"
        )


def _grid(dataset: Any) -> Grid:
    a, b, c, d, e, f = (float(value) + 0.0 for value in dataset.transform[:6])  # + 0: no -0.0
    crs = dataset.crs.to_wkt() if dataset.crs else None
    return Grid((dataset.height, dataset.width), (a, b, c, d, e, f), crs)


def _bands(dataset: Any, path: Path) -> tuple[Band, ...]:
    """What the tags of a file and of its bands, and their descriptions, say of the bands."""
    if any(kind.startswith("complex") for kind in dataset.dtypes):
        raise SceneError(
            f"a scene holds real numbers; {path} holds {dataset.dtypes[0]}: take its amplitude"
        )
    if dataset.count > MOST_BANDS:
        raise SceneError(
            f"a scene has at most {MOST_BANDS:,} bands; {path} has {dataset.count:,}: is it a "
            "series of images? Cut the bands of one from it"
        )
    shared = _tags(dataset)
    # Each of these asks GDAL for all bands: once will do.
    scales, offsets, names = dataset.scales, dataset.offsets, dataset.descriptions
    nodata, colours = dataset.nodatavals, dataset.colorinterp
    lists = {key: _numbers(shared.get(key, "")) for key in VECTORS}
    factor = to_number(shared.get("reflectance_scale_factor")) or 1.0
    tags = [_tags(dataset, number) for number in dataset.indexes]
    bands = []
    for i, own in enumerate(tags):
        known = {key: to_number(own.get(key)) for key in VECTORS}
        for key, values in lists.items():
            if known[key] is None and len(values) == dataset.count:
                known[key] = values[i]
        scale, offset = float(scales[i]), float(offsets[i])
        band = Band(
            number=i + 1,
            name=names[i] or f"band {i + 1}",
            wavelength=known["wavelength"],
            fwhm=known["fwhm"],
            scale=1 / factor if (scale, offset) == (1, 0) else scale,
            offset=offset,
            nodata=nodata[i],
            bad=known["bbl"] == 0,
            alpha=colours[i] == ColorInterp.alpha,
        )
        bands.append(band)
    unit = (shared | tags[0]).get("wavelength_units", "")
    known_nm = in_nanometres(bands, unit)
    return tuple(
        b if b.wavelength else named_wavelength(b, own)
        for b, own in zip(known_nm, tags, strict=True)
    )


def _tags(dataset: Any, *band: int) -> dict[str, str]:
    """All metadata of a file or of one of its bands, names in lower case."""
    found: dict[str, str] = {}
    for space in (*dataset.tag_namespaces(*band), None):  # the default domain has the last word
        if space in ("IMAGE_STRUCTURE", "DERIVED_SUBDATASETS") or (space or "").startswith("xml:"):
            continue
        for key, value in dataset.tags(*band, ns=space).items():
            name = key.lower().replace(" ", "_")
            if name.startswith("netcdf_dim_wavelength") and band:
                name = "wavelength"  # the coordinate along a NetCDF cube's bands
            if name in ("wavelength#units", "wavelengths#units", "wavelength_unit"):
                name = "wavelength_units"
            found[name] = value
    return found


def _numbers(text: str) -> list[float]:
    """The numbers of an ENVI list such as {400.5, 410.2}."""
    parts = [to_number(part) for part in text.strip().strip("{}").split(",")]
    return [] if None in parts else [part for part in parts if part is not None]


RASTERS = (".tif", ".tiff", ".jp2", ".img", ".dat", ".bsq", ".bil", ".bip", ".raw", ".vrt", "")


def folder_header(folder: Path) -> RasterHeader:
    """Single-band files of one grid as one scene, in the order in which a person counts."""
    files = sorted(filter(_is_raster, folder.iterdir()), key=_natural)
    if not files:
        raise FileError(f"{folder} holds no raster file: give a scene, or a folder of its bands")
    bands, stack = [], []
    for number, path in enumerate(files, 1):
        with open_gdal(str(path), path) as dataset:
            if dataset.count != 1:
                raise FileError(
                    f"a folder of bands holds files of one band; {path.name} has {dataset.count}: "
                    "give that file itself, or move it elsewhere"
                )
            kind = typename_fwd[dtype_rev[dataset.dtypes[0]]]
            described = bool(dataset.descriptions[0])
        _, grid, (band,) = gdal_header(path, str(path))
        if number == 1:
            first = grid
        elif grid != first:
            raise SceneError(
                f"the bands of a scene lie on one grid; {path.name} {grid.shape} and "
                f"{files[0].name} {first.shape} do not: resample them, or move one elsewhere"
            )
        band = replace(band, number=number, name=band.name if described else path.stem)
        bands.append(band if band.wavelength else named_wavelength(band, {}))
        stack.append(_virtual_band(path, number, kind))
    size = f'rasterXSize="{first.shape[1]}" rasterYSize="{first.shape[0]}"'
    form = Gdal(folder, f"<VRTDataset {size}>{''.join(stack)}</VRTDataset>")
    return LazyFile(form), first, tuple(bands)


def _natural(path: Path) -> list[str | int]:
    return [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", path.name)]


def _virtual_band(path: Path, number: int, kind: str) -> str:
    """A file as a band of a GDAL virtual dataset, which keeps few of its files open at a time."""
    return (
        f'<VRTRasterBand dataType="{kind}" band="{number}"><SimpleSource>'
        f'<SourceFilename relativeToVRT="0">{escape(str(path.resolve()))}</SourceFilename>'
        "<SourceBand>1</SourceBand></SimpleSource></VRTRasterBand>"
    )


def data_file(path: Path) -> Path:
    """The data file that an ENVI header belongs to; any other path is returned as it is."""
    if path.suffix.lower() != ".hdr":
        return path
    bare = path.with_suffix("")  # of cube.hdr and of cube.dat.hdr alike
    beside = [p for p in sorted(path.parent.iterdir()) if p.stem == bare.name and _is_raster(p)]
    if bare.is_file():
        return bare
    if not beside:
        raise FileError(f"{path} has no data file beside it: expected {bare} or {bare}.dat")
    return beside[0]


def _is_raster(path: Path) -> bool:
    return path.is_file() and path.suffix.lower() in RASTERS and not path.name.startswith(".")
