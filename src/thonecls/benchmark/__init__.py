"""The paper's experiments: planned, run, recorded, and shown beside the paper's own figures."""

from __future__ import annotations

from thonecls.benchmark.plan import Cell
from thonecls.benchmark.records import Record, Results, read_results
from thonecls.benchmark.run import run_cells
from thonecls.benchmark.studies import STUDIES, Study, cells_of, find_study

__all__ = [
    "STUDIES",
    "Cell",
    "Record",
    "Results",
    "Study",
    "cells_of",
    "find_study",
    "read_results",
    "run_cells",
]
