"""Places worth a look, from what a run remembers of its scene."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from thonecls.errors import ConfigError
from thonecls.trust.suggestions import suggest
from thonecls.vector import points_path
from thonecls.workflow.evidence import load_evidence
from thonecls.workflow.outputs import read_probability
from thonecls.workflow.runs import check_together
from thonecls.workflow.verifying import read_told, write_new_points

SIZE = 20  # places


def suggest_places(
    run: Path,
    out: Path | None = None,
    *,
    size: int = SIZE,
    seed: int = 0,
    answered: NDArray[np.int64] | None = None,
) -> Path:
    """Write places whose answer would teach a run most; the path of the file.

    In its column `present` belongs 1 where the class is, 0 where it is not, nothing where nobody
    can tell; `train` takes it by `--answers`. answered: pixels, by flat index, near which nothing
    is asked again, besides the labels that the run has learnt from.
    """
    if size < 1:
        raise ConfigError(f"'size' must be 1 or more. Got {size} instead")
    told = read_told(run)
    grid, _ = read_probability(run)
    path = points_path(run / "suggestions" if out is None else out, grid)
    evidence = load_evidence(run, grid.shape)
    check_together(run, told)
    at = np.stack(np.meshgrid(evidence.rows, evidence.columns, indexing="ij"), axis=2).reshape(
        -1, 2
    )
    pixels = at[:, 0] * grid.shape[1] + at[:, 1]
    told_of = evidence.labels if answered is None else np.union1d(evidence.labels, answered)
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
