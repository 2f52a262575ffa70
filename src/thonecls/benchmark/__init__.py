"""The paper's experiments: planned, run, recorded, and shown beside the paper's own figures."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from thonecls.lazy import lazy_exports

if TYPE_CHECKING:
    from thonecls.benchmark.plan import Cell as Cell
    from thonecls.benchmark.records import Record as Record
    from thonecls.benchmark.records import Results as Results
    from thonecls.benchmark.records import read_results as read_results
    from thonecls.benchmark.run import run_cells as run_cells
    from thonecls.benchmark.studies import STUDIES as STUDIES
    from thonecls.benchmark.studies import Study as Study
    from thonecls.benchmark.studies import cells_of as cells_of
    from thonecls.benchmark.studies import find_study as find_study

# How labels are drawn.
Protocol = Literal["paper", "resampled", "spatial", "half", "plot", "polygons", "noisy"]

_HOMES = {
    "STUDIES": "thonecls.benchmark.studies",
    "Cell": "thonecls.benchmark.plan",
    "Record": "thonecls.benchmark.records",
    "Results": "thonecls.benchmark.records",
    "Study": "thonecls.benchmark.studies",
    "cells_of": "thonecls.benchmark.studies",
    "find_study": "thonecls.benchmark.studies",
    "read_results": "thonecls.benchmark.records",
    "run_cells": "thonecls.benchmark.run",
}
__all__ = ["Protocol", *_HOMES]
__getattr__, __dir__ = lazy_exports(__name__, _HOMES)
