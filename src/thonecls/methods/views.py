"""T-HOneCls with two views of every image (ours): student and teacher each see another one.

An image that is mirrored or moved a little is still of its class. So the labelled images are never
the same twice, which keeps them from being memorised, and the teacher's answer on one view is what
the student is to give on another.
"""

from __future__ import annotations

from dataclasses import replace

from torch import Tensor, nn

from thonecls.errors import ConfigError
from thonecls.images.data import ImageData, ItemBatch
from thonecls.images.steps import PLAIN
from thonecls.method.checkpoint import State
from thonecls.method.config import TrainConfig
from thonecls.method.procedure import StepLosses, objective


def two_views(batch: ItemBatch) -> tuple[ItemBatch, ItemBatch]:
    """The batch as the student sees it, and as the teacher does."""
    return batch._replace(view=0), batch._replace(view=1)


def _step_losses(
    state: State, data: ImageData, batch: ItemBatch, config: TrainConfig
) -> StepLosses:
    """The paper's objective, Eq. 20, with a view for the student and another for the teacher."""
    shape = data.positive.items.shape[1:]
    if len(shape) != 3:
        raise ConfigError(
            "'t-honecls-views' mirrors and moves images, (n, channels, rows, columns). Got items "
            f"of shape {tuple(shape)} instead: take 't-honecls'"
        )
    seen = two_views(batch)

    def logits_of(net: nn.Module) -> tuple[Tensor, Tensor]:
        return data.logits(net, seen[net is state.teacher])

    return objective(state.student, state.teacher, logits_of, config)


VIEWS = replace(PLAIN, name="views", step_losses=_step_losses)
