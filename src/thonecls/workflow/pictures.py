"""Pictures of scenes of any kind and size, with their maps and labels."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from thonecls.io.inputs import SceneInput
from thonecls.io.raster import RasterSource
from thonecls.maps import MAP, Backdrop, Marks, draw_map, name_bands, write_quicklook
from thonecls.report.plots import false_colour
from thonecls.scene import NO_DATA, Scene, Source
from thonecls.workflow.run_folder import OVERVIEW, read_map_strips

PICTURE = 2000  # pixels that a side of the overview shows at most
STRIP = 64  # rows that are read at a time to look a scene over


def draw_overview(
    out: Path, scene: SceneInput, *, title: str, label: str = "class", marks: Marks | None = None
) -> None:
    """overview.png: the map in the folder over its scene, with labels; of several side by side."""
    if scene.parts:
        step = _step(scene.source)
        mapped = np.concatenate(list(read_map_strips(out)))[::step, ::step]
        values = np.where(mapped == NO_DATA, np.nan, mapped)
        backdrop = _backdrop(scene.source, None, scene.wavelengths)
        draw_map(out / OVERVIEW, backdrop, values, title=title, label=label, marks=marks)
    elif isinstance(scene.source, RasterSource):
        write_quicklook(
            out / OVERVIEW, scene.source, out / MAP, title=title, label=label, marks=marks
        )
    else:
        draw_array_overview(
            out,
            scene.source,
            title=title,
            label=label,
            marks=marks,
            wavelengths=scene.wavelengths,
        )


def draw_labels(path: Path, scene: SceneInput, marks: Marks, *, title: str) -> None:
    """A scene with its labels, before there is a map."""
    if isinstance(scene.source, RasterSource):
        write_quicklook(path, scene.source, None, title=title, marks=marks)
    else:
        backdrop = _backdrop(scene.source, None, scene.wavelengths)
        draw_map(path, backdrop, None, title=title, marks=marks)


def draw_array_overview(
    out: Path,
    source: Source,
    *,
    title: str,
    label: str = "class",
    marks: Marks | None = None,
    rgb: tuple[int, int, int] | None = None,
    wavelengths: Sequence[float] | None = None,
) -> None:
    """overview.png of a scene without georeference; of a large one every n-th row and column."""
    step = _step(source)
    mapped = np.load(out / "map.npy", mmap_mode="r")[::step, ::step]
    values = np.where(mapped == NO_DATA, np.nan, mapped)
    backdrop = _backdrop(source, rgb, wavelengths)
    draw_map(out / OVERVIEW, backdrop, values, title=title, label=label, marks=marks)


def _backdrop(
    source: Source, rgb: tuple[int, int, int] | None, wavelengths: Sequence[float] | None
) -> Backdrop:
    last = source.bands - 1
    bands = rgb or (last * 3 // 4, last // 2, last // 4)
    scene = thumbnail(source, _step(source), bands)
    image = false_colour(scene) if scene.valid.any() else np.ones((*scene.shape, 3))
    return Backdrop(image, source.shape, name_bands(bands, wavelengths))


def _step(source: Source) -> int:
    return -(-max(source.shape) // PICTURE)


def thumbnail(source: Source, step: int, bands: tuple[int, int, int]) -> Scene:
    """Three bands of every n-th row and column, read a few rows at a time."""
    cubes, valids = [], []
    strip = max(step, STRIP // step * step)
    for start in range(0, source.shape[0], strip):
        rows = slice(start, min(start + strip, source.shape[0]))
        part = source.read(rows, slice(0, source.shape[1]))
        cubes.append(part.cube[list(bands), ::step, ::step])
        valids.append(part.valid[::step, ::step])
    return Scene(np.concatenate(cubes, axis=1), np.concatenate(valids, axis=0))
