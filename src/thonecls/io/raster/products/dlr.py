"""EnMAP and DESIS L2A: folders of GeoTIFFs with metadata in XML, as DLR delivers both."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import numpy as np

from thonecls.errors import FileError, SceneError
from thonecls.io.grid import Grid
from thonecls.io.raster.bands import Band, to_number
from thonecls.io.raster.files import Format, LazyFile, sample_windows
from thonecls.io.raster.gdal import Gdal, gdal_header
from thonecls.io.raster.products.metadata import find_all, local, read_xml, text_of
from thonecls.io.raster.products.overlap import without_overlap
from thonecls.io.raster.products.quality import Flag, Product, flagged_file
from thonecls.io.raster.products.stack import layers_of, stack

FILE = re.compile(
    r"(.+)-(METADATA|SPECTRAL_IMAGE|QL_QUALITY[\w-]*?)(_COG)?"
    r"\.(xml|tiff?|geotiff|bsq|bil|bip|jp2|jpeg2000)",
    re.I,
)
SCALE = 1e-4  # of reflectance, where the metadata have no gain
# What each layer says of a pixel that is of no use.
FLAGS: dict[str, tuple[Flag, ...]] = {
    "QL_QUALITY_CLOUD": (Flag(1, values=(1,)),),
    "QL_QUALITY_CLOUDSHADOW": (Flag(1, values=(1,)),),
    "QL_QUALITY_CIRRUS": (Flag(1, values=(2, 3)),),  # thin cirrus (1) is corrected for
    "QL_QUALITY-2": (Flag(6, values=(1,)), Flag(7, values=(1,))),  # DESIS: over land, over water
}


def dlr_product(folder: Path, scene: str | None, flagged: bool) -> Product | None:
    """The spectral image of a folder, its bands described by the metadata beside it.

    scene: the name of a file of the scene, where a folder holds several.
    """
    files = _files(folder, scene)
    if "METADATA" not in files or "SPECTRAL_IMAGE" not in files:
        return None
    root, image = read_xml(files["METADATA"]), files["SPECTRAL_IMAGE"]
    _, grid, bands = gdal_header(image, str(image))
    background = to_number(text_of(root, "backgroundValue"))
    described = _described(root, bands, background, files["METADATA"])
    cube = Gdal(image, str(image))
    described = _without_empty(cube, grid, described)
    first = _first_detector(root, described)
    if first:
        described = list(without_overlap(described, first))
    quality = [] if flagged else _quality(files, grid)
    name = "DESIS" if image.name.upper().startswith("DESIS") else "EnMAP"
    words = [f"{name}, bands by {files['METADATA'].name}"]
    if quality:
        used = ", ".join(name.lower() for name in FLAGS if name in files)
        words.append(f"no data where the quality layers flag clouds: {used}")
    file = flagged_file(cube, quality)
    return Product((file, grid, tuple(described)), tuple(words))


def _files(folder: Path, scene: str | None) -> dict[str, Path]:
    """The files of one scene, by their kind."""
    known = [(found, path) for path in folder.iterdir() if (found := FILE.fullmatch(path.name))]
    named = FILE.fullmatch(scene) if scene else None
    scenes = sorted({match[1] for match, _ in known if match[2].upper() == "METADATA"})
    if named is not None:
        scenes = [named[1]]
    if len(scenes) > 1:
        raise FileError(
            f"{folder} holds {len(scenes)} scenes ({', '.join(scenes[:3])}): name the metadata of "
            "one of them"
        )
    return {match[2].upper(): path for match, path in known if match[1] in scenes}


def _described(
    root: ElementTree.Element, bands: Sequence[Band], background: float | None, path: Path
) -> list[Band]:
    """The bands of an image with what the metadata say of them."""
    told = [
        {local(part).lower(): (part.text or "").strip() for part in entry}
        | {name.lower(): value for name, value in entry.attrib.items()}
        for group in find_all(root, "bandCharacterisation")  # bands stand elsewhere too
        for entry in group
        if local(entry) in ("bandID", "band")
    ]
    expected = _channels(root)
    if len(told) > len(bands) == len(expected):  # of all bands only these are in the image
        told = [entry for i, entry in enumerate(told, 1) if i in expected]
        expected = set()
    if len(told) != len(bands):
        raise SceneError(
            f"{path.name} describes {len(told)} bands, the image has {len(bands)}: get the whole "
            "product again"
        )
    found = []
    for band, entry in zip(bands, told, strict=True):
        gain = to_number(entry.get("gainofband"))
        found.append(
            replace(
                band,
                name=f"band {band.number}",
                wavelength=to_number(entry.get("wavelengthcenterofband")) or None,
                fwhm=to_number(entry.get("fwhmofband", entry.get("wavelengthwidthofband"))),
                scale=gain or SCALE,
                offset=to_number(entry.get("offsetofband")) or 0.0,
                nodata=band.nodata if background is None else background,
                bad=bool(expected) and band.number not in expected,
                why="not among the channels that the metadata expect",
            )
        )
    return found


def _without_empty(cube: Format, grid: Grid, bands: list[Band]) -> list[Band]:
    """Mark the bands that have no data where others have some: they would void every pixel.

    Whoever uses them all the same shall see the others.
    """
    file, numbers = LazyFile(cube), [band.number for band in bands]
    nodata = np.array([np.nan if b.nodata is None else b.nodata for b in bands])[:, None, None]
    empty, seen = np.ones(len(bands), dtype=bool), False
    for rows, columns in sample_windows(grid.shape, count=3):
        raw, _ = file.read(numbers, rows, columns)
        data = raw != nodata
        if data.any():
            empty, seen = empty & ~data.any(axis=(1, 2)), True
    if not seen:  # nothing but background was looked at
        return bands
    return [
        replace(band, bad=True, nodata=None, why="no data wherever it was looked at")
        if blank
        else band
        for band, blank in zip(bands, empty, strict=True)
    ]


def _first_detector(root: ElementTree.Element, bands: Sequence[Band]) -> set[int]:
    """Positions of the bands of the first of two detectors; none where there is but one.

    Wavelengths begin again with the second. In some versions the bands of both are sorted by
    wavelength; then the metadata tell the channels of each.
    """
    waves = [band.wavelength or 0 for band in bands]
    again = next((i for i in range(1, len(waves)) if waves[i] < waves[i - 1]), 0)
    if again:
        return set(range(again))
    first, second = (
        {number for part in find_all(root, name) for number in _channels(part)}
        for name in ("vnirProductQuality", "swirProductQuality")
    )
    if not first or not second or max(first | second) > len(bands):
        return set()
    return {number - 1 for number in first - second}


def _channels(root: ElementTree.Element) -> set[int]:
    """The numbers of the channels that metadata expect."""
    return {
        int(number)
        for element in find_all(root, "expectedChannelsList")
        for number in re.findall(r"\d+", element.text or "")
    }


def _quality(files: dict[str, Path], grid: Grid) -> list[tuple[Format, tuple[Flag, ...]]]:
    """The quality layers that there are, on the grid of the image."""
    found: list[tuple[Format, tuple[Flag, ...]]] = []
    for name, flags in FLAGS.items():
        if name in files:
            layers = layers_of(files[name])
            used = tuple(flag for flag in flags if flag.number <= len(layers))
            found.append((stack(files[name], grid, layers), used))
    return [(layer, flags) for layer, flags in found if flags]
