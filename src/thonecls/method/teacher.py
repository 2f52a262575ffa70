"""The KL-Teacher: an exponential moving average of the student, and how to agree with it."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn


def ramped_decay(epoch: int, alpha: float = 0.99) -> float:
    """EMA decay of the 0-based `epoch`: min(1 - 1/(epoch + 1), alpha).

    In epoch 0 the teacher is a copy of the student; the window grows with the epochs.

    >>> [ramped_decay(e) for e in (0, 1, 3, 9, 99, 500)]
    [0.0, 0.5, 0.75, 0.9, 0.99, 0.99]
    """
    return min(1 - 1 / (epoch + 1), alpha)


def constant_decay(epoch: int, alpha: float = 0.99) -> float:
    """EMA decay as the paper's text has it: alpha, whatever the epoch."""
    return alpha


@torch.no_grad()
def ema_update_(teacher: nn.Module, student: nn.Module, decay: float) -> None:
    """teacher <- decay * teacher + (1 - decay) * student, in place (Eq. 18).

    Over parameters and buffers; integer buffers (counters) are copied. With decay 0 the teacher
    equals the student bit by bit.
    """
    averaged, latest = [], []
    for old, new in zip(_state(teacher), _state(student), strict=True):
        if old.is_floating_point():
            averaged.append(old)
            latest.append(new)
        else:
            old.copy_(new)
    torch._foreach_lerp_(averaged, latest, 1 - decay)


def kl_consistency(student: Tensor, teacher: Tensor) -> Tensor:
    """Mean symmetric KL of two Bernoullis, Eq. 19: exactly (p_S - p_T)(z_S - z_T).

    student, teacher: (n,) logits. The closed form needs no epsilon and cannot overflow.

    >>> round(kl_consistency(torch.tensor([2.0]), torch.tensor([-1.0])).item(), 6)
    1.835567
    """
    gap = torch.sigmoid(student) - torch.sigmoid(teacher)
    return (gap * (student - teacher)).mean()


def l2_consistency(student: Tensor, teacher: Tensor) -> Tensor:
    """Mean squared difference of the probabilities, as in Mean Teacher."""
    return (torch.sigmoid(student) - torch.sigmoid(teacher)).square().mean()


def _state(module: nn.Module) -> list[Tensor]:
    return [*module.parameters(), *module.buffers()]


DECAYS: dict[str, Callable[[int, float], float]] = {
    "ramp": ramped_decay,
    "constant": constant_decay,
}
CONSISTENCIES: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "kl": kl_consistency,
    "l2": l2_consistency,
}
