"""Landsat Collection 2, level 1 and 2: folders with a GeoTIFF for each band."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from pathlib import Path

from thonecls.errors import FileError
from thonecls.io.raster.bands import Band, to_number
from thonecls.io.raster.products.metadata import local, read_xml
from thonecls.io.raster.products.quality import Flag, Product, flagged_file
from thonecls.io.raster.products.stack import layers_of, stack

SCENE = r"(L[COTEM]0\d_L\w+?_(?:T1|T2|RT))"  # sensor, level, place, dates, and its tier
FILE = re.compile(SCENE + r"_(SR_B\d+|B\d+|QA_PIXEL|MTL)\.(tif|txt|xml|json)", re.I)
FORMS = (".txt", ".xml", ".json")  # of metadata, which say the same
# Reflective bands of 30 m by sensor: wavelengths and widths in nm.
OLI = {
    **{1: (443.0, 16.0), 2: (482.0, 60.0), 3: (561.5, 57.0), 4: (654.5, 37.0), 5: (865.0, 28.0)},
    **{6: (1608.5, 85.0), 7: (2200.5, 187.0), 9: (1373.5, 20.0)},
}
TM = {
    **{1: (485.0, 70.0), 2: (560.0, 80.0), 3: (660.0, 60.0), 4: (830.0, 140.0)},
    **{5: (1650.0, 200.0), 7: (2215.0, 270.0)},
}
SENSORS = {"LC": OLI, "LO": OLI, "LE": TM, "LT": TM}
CIRRUS = 9  # of OLI
SURFACE = (2.75e-5, -0.2)  # scale and offset of surface reflectance, where no file tells them
FILL, CLOUDS = 0b1, 0b11110  # bits of QA_PIXEL: dilated cloud, cirrus, cloud, cloud shadow


def landsat_product(folder: Path, scene: str | None, flagged: bool) -> Product | None:
    """Surface reflectance of level 2, or reflectance at the top of the atmosphere of level 1.

    scene: the name of a file of the scene, where a folder holds several.
    """
    files = _files(folder, scene)
    surface = any(kind.startswith("SR_B") for kind in files)
    if "QA_PIXEL" not in files and "MTL" not in files:
        return None
    sensor = SENSORS.get(next(iter(files.values())).name[:2].upper())
    prefix = "SR_B" if surface else "B"
    numbers = [n for n in sensor or {} if f"{prefix}{n}" in files]
    if sensor is None or not numbers:
        return None
    about = _metadata(files.get("MTL"), surface)
    layers = [layers_of(files[f"{prefix}{n}"])[0] for n in numbers]
    grid = layers[0].grid
    bands = []
    for position, number in enumerate(numbers, 1):
        scale, offset = _scale(about, number, surface, files.get("MTL", folder))
        wavelength, width = sensor[number]
        bands.append(
            Band(
                *(position, f"{prefix}{number}", wavelength, width, scale, offset, 0.0),
                bad=number == CIRRUS,
                why="it sees cirrus, not the ground",
            )
        )
    quality, words = [], [f"Landsat level {2 if surface else 1}, bands {prefix}*"]
    if "QA_PIXEL" in files:
        bits = FILL if flagged else FILL | CLOUDS
        layer = stack(files["QA_PIXEL"], grid, layers_of(files["QA_PIXEL"]))
        quality.append((layer, (Flag(1, bits=bits),)))
        words.append("no data where QA_PIXEL shows fill" + ("" if flagged else ", clouds, shadow"))
    cube = stack(folder, grid, layers, 0.0)
    return Product((flagged_file(cube, quality), grid, tuple(bands)), tuple(words))


def _files(folder: Path, scene: str | None) -> dict[str, Path]:
    """The files of one scene, by their kind."""
    known = [(found, path) for path in folder.iterdir() if (found := FILE.fullmatch(path.name))]
    named = re.match(SCENE + r"_MTL\.", scene or "", re.I)
    scenes = [named[1]] if named else sorted({match[1] for match, _ in known})
    if len(scenes) > 1:
        raise FileError(
            f"{folder} holds {len(scenes)} scenes ({', '.join(scenes[:3])}): name the MTL file of "
            "one of them"
        )
    own = [(match[2].upper(), path) for match, path in known if match[1] in scenes]
    forms = {path.suffix.lower(): path for kind, path in own if kind == "MTL"}
    best = [forms[form] for form in FORMS if form in forms][:1]
    return {kind: path for kind, path in own if kind != "MTL" or path in best}


def _metadata(path: Path | None, surface: bool) -> dict[str, float]:
    """The numbers of an MTL file, in any of its forms, that are of use.

    An MTL of level 2 has the scales of both levels, by the same names in groups of their own.
    """
    if path is None:
        return {}
    wanted = "LEVEL2_SURFACE_REFLECTANCE_PARAMETERS" if surface else "LEVEL1_RADIOMETRIC_RESCALING"
    found = {}
    for group, name, value in _entries(path):
        number = to_number(value)
        if number is not None and (group == wanted or name == "SUN_ELEVATION"):
            found[name] = number
    return found


def _entries(path: Path) -> Iterator[tuple[str, str, str]]:
    """Group, name and value of all that an MTL file tells."""
    if path.suffix.lower() == ".xml":
        for group in read_xml(path):
            yield from ((local(group), local(entry), entry.text or "") for entry in group)
        return
    if path.suffix.lower() == ".json":
        try:
            tree = json.loads(path.read_text("utf-8"))["LANDSAT_METADATA_FILE"]
            found = [(g, n, str(v)) for g, entries in tree.items() for n, v in entries.items()]
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise FileError(
                f"cannot read {path} ({error}): get the metadata (MTL) of the product again"
            ) from error
        yield from found
        return
    name = ""
    for line in path.read_text("utf-8", "replace").splitlines()[:5000]:
        key, _, value = (part.strip() for part in line.partition("="))
        name = value if key == "GROUP" else name
        yield name, key, value


def _scale(about: dict[str, float], number: int, surface: bool, path: Path) -> tuple[float, float]:
    """Scale and offset of a band, that reflectance may come from its numbers."""
    names = f"REFLECTANCE_MULT_BAND_{number}", f"REFLECTANCE_ADD_BAND_{number}"
    if surface:
        return about.get(names[0], SURFACE[0]), about.get(names[1], SURFACE[1])
    if any(name not in about for name in names):
        raise FileError(
            f"{path} does not tell the reflectance of band {number} ({names[0]}): get the "
            "metadata (MTL) of the product again"
        )
    sun = math.sin(math.radians(about.get("SUN_ELEVATION", 90.0)))
    if sun <= 0:
        raise FileError(f"{path} says that the sun was below the horizon: choose another scene")
    return about[names[0]] / sun, about[names[1]] / sun
