"""The steps behind the commands: from files to a run's folder, from a model to a map."""

from __future__ import annotations

from thonecls.workflow.checking import check_scene
from thonecls.workflow.commands import TrainOptions
from thonecls.workflow.demo import demo
from thonecls.workflow.describing import describe, estimate_priors
from thonecls.workflow.mapping import map_scene
from thonecls.workflow.reporting import TruthFile, write_report
from thonecls.workflow.training import train_scene

__all__ = [
    "TrainOptions",
    "TruthFile",
    "check_scene",
    "demo",
    "describe",
    "estimate_priors",
    "map_scene",
    "train_scene",
    "write_report",
]
