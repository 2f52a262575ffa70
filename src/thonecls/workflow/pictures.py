"""Pictures of array scenes of any size."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from thonecls.report import Truth, draw_overview
from thonecls.scene import BoolArray, Scene, Source
from thonecls.workflow.runs import OVERVIEW

PICTURE = 2000  # pixels that a side of the overview shows at most
STRIP = 64  # rows that are read at a time to look a scene over


def draw_array_overview(
    out: Path,
    source: Source,
    positives: BoolArray | None,
    *,
    title: str,
    threshold: float,
    rgb: tuple[int, int, int] | None = None,
    truth: Truth | None = None,
) -> None:
    """overview.png of a scene without georeference; of a large one every n-th row and column."""
    step = -(-max(source.shape) // PICTURE)
    probability = np.load(out / "probability.npy", mmap_mode="r")
    if positives is not None and step > 1:
        small = np.zeros((-(-source.shape[0] // step), -(-source.shape[1] // step)), dtype=bool)
        rows, columns = np.nonzero(positives)
        small[rows // step, columns // step] = True
        positives = small
    last = source.bands - 1
    bands = rgb or (last * 3 // 4, last // 2, last // 4)
    draw_overview(
        out / OVERVIEW,
        thumbnail(source, step, bands),
        positives,
        np.asarray(probability[::step, ::step]),
        title=title,
        threshold=threshold,
        truth=truth,
    )


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
