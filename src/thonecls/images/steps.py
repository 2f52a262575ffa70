"""What steps of training on images share: optimiser, rates, entropies, random weights."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import softplus

from thonecls.images.data import ItemBatch
from thonecls.method.checkpoint import State
from thonecls.method.config import TrainConfig
from thonecls.method.procedure import Procedure, StepLosses
from thonecls.method.taylor import positive_loss

BETAS = (0.5, 0.99)  # of Adam, in vPU's and P3MIX's experiments and in the paper's on images
USUAL_BETAS = (0.9, 0.999)


def adam(
    net: nn.Module, config: TrainConfig, betas: tuple[float, float] = BETAS
) -> torch.optim.Optimizer:
    """The optimiser of one network on images."""
    return torch.optim.Adam(
        net.parameters(), lr=config.rate, betas=betas, weight_decay=config.weight_decay
    )


def halved(config: TrainConfig, epoch: int, *, times: int) -> float:
    """Half the rate after every 20 epochs, so many times at most.

    >>> [halved(TrainConfig(rate=1.0), epoch, times=2) for epoch in (0, 19, 20, 45, 90)]
    [1.0, 1.0, 0.5, 0.25, 0.25]
    """
    return config.rate * 0.5 ** min(epoch // 20, times)


def cosine(config: TrainConfig, epoch: int, *, floor: float) -> float:
    """Down to `floor` of the rate over the epochs, as half a cosine.

    >>> [round(cosine(TrainConfig(rate=1.0, epochs=4), e, floor=0.5), 3) for e in range(4)]
    [1.0, 0.927, 0.75, 0.573]
    """
    return config.rate * (floor + (1 - floor) * (1 + math.cos(math.pi * epoch / config.epochs)) / 2)


PLAIN: Procedure[ItemBatch] = Procedure(name="adam", optimizer=adam, rate=partial(halved, times=2))


def entropy(logits: Tensor) -> Tensor:
    """Entropy of each Bernoulli, its logit held within 10 of zero.

    >>> [round(value, 3) for value in entropy(torch.tensor([0.0, 100.0])).tolist()]
    [0.693, 0.0]
    """
    z = logits.clamp(-10, 10)
    return softplus(z) - z * torch.sigmoid(z)


def beta_draw(shape: float, random: torch.Generator) -> float:
    """One number under Beta(shape, shape), by the generator given."""
    seed = int(torch.randint(2**62, (), generator=random))
    return float(np.random.default_rng(seed).beta(shape, shape))


def step_generator(state: State) -> torch.Generator:
    """Random numbers that depend on the place in the schedule alone: a resumed step repeats them.

    For data whose batches carry no seed.
    """
    return torch.Generator().manual_seed(2**32 * state.epoch + state.step)


def with_parts(loss: Tensor, positive: Tensor, unlabeled: Tensor, extra: Tensor) -> StepLosses:
    """The loss with its parts; what it has beside the PU loss stands as consistency."""
    part = positive_loss(positive.detach())
    rest, share = loss.detach() - extra.detach() - part, torch.sigmoid(unlabeled.detach()).mean()
    return StepLosses(loss, part, rest, extra.detach(), share)
