"""The steps behind the commands: from files to a run's folder, from a model to a map."""

from __future__ import annotations

from typing import TYPE_CHECKING

from thonecls.lazy import lazy_exports

if TYPE_CHECKING:
    from thonecls.workflow.checking import check_scene as check_scene
    from thonecls.workflow.commands import TrainOptions as TrainOptions
    from thonecls.workflow.describing import describe as describe
    from thonecls.workflow.describing import estimate_priors as estimate_priors
    from thonecls.workflow.mapping import map_scene as map_scene
    from thonecls.workflow.reporting import TruthFile as TruthFile
    from thonecls.workflow.reporting import write_report as write_report
    from thonecls.workflow.suggesting import suggest_places as suggest_places
    from thonecls.workflow.training import train_scene as train_scene
    from thonecls.workflow.verifying import draw_sample as draw_sample

_HOMES = {
    "TrainOptions": "thonecls.workflow.commands",
    "TruthFile": "thonecls.workflow.reporting",
    "check_scene": "thonecls.workflow.checking",
    "draw_sample": "thonecls.workflow.verifying",
    "describe": "thonecls.workflow.describing",
    "estimate_priors": "thonecls.workflow.describing",
    "map_scene": "thonecls.workflow.mapping",
    "suggest_places": "thonecls.workflow.suggesting",
    "train_scene": "thonecls.workflow.training",
    "write_report": "thonecls.workflow.reporting",
}
__all__ = [*_HOMES]
__getattr__, __dir__ = lazy_exports(__name__, _HOMES)
