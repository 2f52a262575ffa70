"""The steps behind the commands: from files to a run's folder, from a model to a map."""

from __future__ import annotations

from typing import TYPE_CHECKING

from thonecls.lazy import lazy_exports

if TYPE_CHECKING:
    from thonecls.workflow.batch import Outcome as Outcome
    from thonecls.workflow.batch import map_scenes as map_scenes
    from thonecls.workflow.check import check_scene as check_scene
    from thonecls.workflow.info import describe as describe
    from thonecls.workflow.info import estimate_priors as estimate_priors
    from thonecls.workflow.map import map_scene as map_scene
    from thonecls.workflow.options import MapOptions as MapOptions
    from thonecls.workflow.options import Running as Running
    from thonecls.workflow.options import TrainOptions as TrainOptions
    from thonecls.workflow.report import TruthFile as TruthFile
    from thonecls.workflow.report import write_report as write_report
    from thonecls.workflow.sample import draw_sample as draw_sample
    from thonecls.workflow.sample import suggest_places as suggest_places
    from thonecls.workflow.summaries import CheckSummary as CheckSummary
    from thonecls.workflow.summaries import MapSummary as MapSummary
    from thonecls.workflow.summaries import PriorSummary as PriorSummary
    from thonecls.workflow.summaries import RunSummary as RunSummary
    from thonecls.workflow.train import train_scene as train_scene

_HOMES = {
    "CheckSummary": "thonecls.workflow.summaries",
    "MapOptions": "thonecls.workflow.options",
    "MapSummary": "thonecls.workflow.summaries",
    "Outcome": "thonecls.workflow.batch",
    "PriorSummary": "thonecls.workflow.summaries",
    "RunSummary": "thonecls.workflow.summaries",
    "Running": "thonecls.workflow.options",
    "TrainOptions": "thonecls.workflow.options",
    "TruthFile": "thonecls.workflow.report",
    "check_scene": "thonecls.workflow.check",
    "draw_sample": "thonecls.workflow.sample",
    "describe": "thonecls.workflow.info",
    "estimate_priors": "thonecls.workflow.info",
    "map_scene": "thonecls.workflow.map",
    "map_scenes": "thonecls.workflow.batch",
    "suggest_places": "thonecls.workflow.sample",
    "train_scene": "thonecls.workflow.train",
    "write_report": "thonecls.workflow.report",
}
__all__ = [*_HOMES]
__getattr__, __dir__ = lazy_exports(__name__, _HOMES)
