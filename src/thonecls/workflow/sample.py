"""Points that a person looks at: to learn how right a map is, or what it misses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thonecls.errors import ConfigError, FileError, LabelError
from thonecls.io.grid import Grid
from thonecls.io.lookup import NONE
from thonecls.io.vector import PRESENT, points_path, read_points, write_points
from thonecls.maps import Measure, scene_grid
from thonecls.scene import BoolArray, FloatArray
from thonecls.trust.suggestions import suggest
from thonecls.trust.verification import STRATA, Verification, draw_points, stratify, verify
from thonecls.workflow.run_folder import (
    CHECKED,
    RUN,
    check_together,
    load_evidence,
    making,
    read_map_strips,
    read_novelty,
    read_probability,
    read_run,
)

SIZE = 60  # points


def draw_sample(run: Path, out: Path | None = None, *, size: int = SIZE, seed: int = 0) -> Path:
    """Write random points of a run's map, to be looked at; the path of the file.

    What is mapped, what is not, what lies near the cut, and what is unlike the training scene are
    sampled apart. In the file's column `present` belongs 1 where the class is, 0 where it is not,
    and nothing where nobody could tell.
    """
    told = read_told(run)
    grid, probability, mapped = read_whole(run)
    check_together(run, told)
    strata = stratify(probability, mapped, float(told["threshold"]), read_novelty(run)).ravel()
    drawn, pixels = draw_points(strata, size, np.random.default_rng(seed))
    path = points_path(run / "sample" if out is None else out, grid)
    kinds = strata[drawn].tolist()
    columns = {"stratum": [kind + 1 for kind in kinds], "pixels": pixels[kinds].tolist()}
    write_new_points(path, grid, drawn, columns)
    return path


def write_new_points(
    path: Path, grid: Grid, pixels: NDArray[np.int64], columns: dict[str, list[Any]]
) -> None:
    """Write points to be answered; never over others, which may have answers."""
    with making(path.parent):
        if path.exists():
            raise FileError(
                f"{path} is there already, perhaps with answers: choose another 'out'",
                options=("out",),
            )
        write_points(path, grid, pixels, columns)


def verify_run(run: Path, points: Path) -> Verification:
    """What the answers in a file of points tell of a run's map.

    points: written by `draw_sample` of this run, its column `present` filled in as far as known. A
    copy stays in the run's folder (`checked_points`), which must be held.
    """
    grid, probability, mapped = read_whole(run)
    found = read_points(points, grid)
    try:
        strata = np.array([int(float(cell)) - 1 for cell in found.columns["stratum"]])
        pixels = np.zeros(len(STRATA), dtype=np.int64)
        pixels[strata] = [int(float(cell)) for cell in found.columns["pixels"]]
    except (KeyError, ValueError, IndexError) as error:
        raise LabelError(
            f"{points.name} does not tell the stratum of its points ({error}): give the file that "
            "`sample` wrote, with its columns stratum and pixels as they were"
        ) from error
    threshold = float(read_told(run)["threshold"])
    own = stratify(probability, mapped, threshold, read_novelty(run)).ravel()
    sizes = np.bincount(own[own >= 0], minlength=len(STRATA))
    if (own[found.pixels] != strata).any() or (sizes[strata] != pixels[strata]).any():
        raise LabelError(
            f"{points.name} was drawn from another map than that of {run}: draw points again"
        )
    if not np.isfinite(found.present).any():
        raise LabelError(f"no point of {points.name} has an answer: fill in its column '{PRESENT}'")
    verification = verify(strata, found.present, pixels, rng=np.random.default_rng(0))
    copy = points_path(run / CHECKED[0], grid)
    if copy != points:
        columns = {"stratum": (strata + 1).tolist(), "pixels": pixels[strata].tolist()}
        write_points(copy, grid, found.pixels, columns, found.present)
    return verification


def checked_points(run: Path) -> Path | None:
    """The answers that a run's report was made with last, if it was with any."""
    return next((run / name for name in CHECKED if (run / name).exists()), None)


def read_whole(run: Path) -> tuple[Grid, FloatArray, BoolArray]:
    """Where a run's map lies, its probabilities, NaN on nodata, and what is mapped."""
    grid, probability = read_probability(run)
    return grid, probability, np.concatenate(list(read_map_strips(run))) == 1


def hectares_of_pixel(grid: Grid) -> float | None:
    """Of a pixel in the middle of the scene, where the CRS tells it; of several, if all agree."""
    if grid.parts:
        found = [hectares_of_pixel(part.grid) for part in grid.parts]
        known = [area for area in found if area is not None]
        same = len(known) == len(found) and max(known) <= 1.01 * min(known)
        return sum(known) / len(known) if same else None
    size = Measure.of_grid(grid.on_map).pixel(grid.on_map)
    if size is None:
        return None
    shown = 1.0  # pixels of the map that show one of the scene
    if grid.lookup is not None:
        table = grid.lookup.table[grid.lookup.table != NONE]
        shown = table.size / max(1, np.unique(table).size)
    return shown * size[0] * size[1] / 1e4


def read_told(run: Path) -> dict[str, Any]:
    """What the summary of a training tells; an error where there is none."""
    told = read_run(run, {})
    if "threshold" not in told:
        raise FileError(f"{run} holds no {RUN} of a training: name the folder of a training")
    return told


PLACES = 20  # to suggest


def suggest_places(
    run: Path,
    out: Path | None = None,
    *,
    size: int = PLACES,
    seed: int = 0,
    answered: NDArray[np.int64] | None = None,
) -> Path:
    """Write places whose answer would teach a run most; the path of the file.

    In its column `present` belongs 1 where the class is, 0 where it is not, nothing where nobody
    can tell; a training takes it as `answers`. answered: pixels, by flat index, near which nothing
    is asked again, besides the labels and negatives that the run has learnt from.
    """
    if size < 1:
        raise ConfigError(f"'size' must be 1 or more. Got {size} instead")
    told = read_told(run)
    grid = scene_grid(run, read_probability(run)[0])
    path = points_path(run / "suggestions" if out is None else out, grid)
    evidence = load_evidence(run, grid.shape)
    check_together(run, told)
    at = np.stack(np.meshgrid(evidence.rows, evidence.columns, indexing="ij"), axis=2).reshape(
        -1, 2
    )
    pixels = at[:, 0] * grid.shape[1] + at[:, 1]
    told_of = np.union1d(evidence.labels, evidence.negatives)
    if answered is not None:
        told_of = np.union1d(told_of, answered)
    known = np.stack(np.divmod(told_of, grid.shape[1]), axis=1)
    chosen = suggest(
        evidence.unlabeled.mean(axis=0),
        at.astype(np.float64),
        evidence.components,
        known.astype(np.float64),
        size,
        np.random.default_rng(seed),
    )
    probability = evidence.unlabeled.mean(axis=0)[chosen]
    write_new_points(
        path, grid, pixels[chosen], {"probability": [round(float(p), 3) for p in probability]}
    )
    return path
