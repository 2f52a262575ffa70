"""T-HOneCls with two views of every image (ours): student and teacher each see another one.

An image that is mirrored or moved a little is still of its class. So the labelled images are never
the same twice, which keeps them from being memorised, and the teacher's answer on one view is what
the student is to give on another.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor, nn
from torch.nn.functional import pad

from thonecls.errors import ConfigError
from thonecls.images.data import ImageData, ItemBatch
from thonecls.images.steps import PLAIN
from thonecls.method.checkpoint import State
from thonecls.method.config import TrainConfig
from thonecls.method.procedure import StepLosses, objective

SHIFT = 4  # pixels to each side at most, as is usual on images of 32×32
SIDES = 8  # an image is moved by no more than its smaller side over this


def view_of(images: Tensor, random: torch.Generator) -> Tensor:
    """Each of (n, C, H, W) images mirrored or not, and moved by a few pixels; edges are reflected.

    >>> image = torch.arange(4.0).reshape(1, 1, 1, 4).expand(1, 1, 4, 4)
    >>> seen = view_of(image, torch.Generator().manual_seed(0))[0, 0, 0].tolist()
    >>> seen in ([0, 1, 2, 3], [3, 2, 1, 0])  # too small to be moved
    True
    """
    count, _, rows, columns = images.shape
    reach = min(SHIFT, min(rows, columns) // SIDES)
    down, across = torch.randint(2 * reach + 1, (2, count, 1), generator=random)
    row, column = torch.arange(rows) + down, torch.arange(columns) + across
    mirrored = torch.randint(2, (count, 1), generator=random) == 1
    column = torch.where(mirrored, column.flip(1), column)
    padded = pad(images, (reach,) * 4, mode="reflect").permute(0, 2, 3, 1)
    which = torch.arange(count)[:, None, None]
    return padded[which, row[:, :, None], column[:, None]].permute(0, 3, 1, 2)


def _step_losses(
    state: State, data: ImageData, batch: ItemBatch, config: TrainConfig
) -> StepLosses:
    """The paper's objective, Eq. 20, with a view for the student and another for the teacher."""
    inputs = data.inputs(batch)
    images = torch.cat(inputs)
    if images.ndim != 4:
        raise ConfigError(
            "'t-honecls-views' mirrors and moves images, (n, channels, rows, columns). Got items "
            f"of shape {tuple(images.shape[1:])} instead: take 't-honecls'"
        )
    random = torch.Generator().manual_seed(batch.seed)
    views = [view_of(images, random) for _ in range(2)]

    def logits_of(net: nn.Module) -> tuple[Tensor, Tensor]:
        logits: Tensor = net(views[net is state.teacher])
        positive, unlabeled = logits.split([len(part) for part in inputs])
        return positive, unlabeled

    return objective(state.student, state.teacher, logits_of, config)


VIEWS = replace(PLAIN, name="views", step_losses=_step_losses)
