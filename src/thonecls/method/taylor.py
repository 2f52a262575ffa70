"""The paper's loss: the variational one, its logarithm as a Taylor series.

Notation and rules as in `thonecls.method.losses`, which has all others.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from thonecls.errors import ConfigError


def taylor_variational(positive: Tensor, unlabeled: Tensor, order: int = 2) -> Tensor:
    """Taylor variational loss, Eq. 12 of the paper: -Σ_{i=1..order} s^i / i - E_p[log f].

    The unlabeled part is bounded below by minus the harmonic number of `order`, and each
    unlabeled pixel weighs (1 - s^order) / Σf <= order / n_u: it cannot dominate.

    >>> z = torch.tensor([0.0, 0.0])
    >>> round(taylor_variational(z, z, order=1).item(), 4)  # -1/2 + log 2
    0.1931
    """
    # sigmoid(-z), not 1 - sigmoid(z): the latter loses small s to cancellation.
    s = torch.sigmoid(-at_least_float32(unlabeled)).mean()
    return positive_loss(positive) - series_of(s, order)


def variational(positive: Tensor, unlabeled: Tensor) -> Tensor:
    """Variational loss, Eq. 4 of the paper: log m - E_p[log f]. Unbounded below.

    >>> z = torch.tensor([0.0, 0.0])
    >>> round(variational(z, z).item(), 4)
    0.0
    """
    log_f = logsigmoid(at_least_float32(unlabeled))
    count = torch.tensor(float(log_f.numel()), device=log_f.device, dtype=log_f.dtype)
    return torch.logsumexp(log_f, 0) - count.log() + positive_loss(positive)


def positive_loss(positive: Tensor) -> Tensor:
    """The positive part that both losses share: -E_p[log f]."""
    return -logsigmoid(at_least_float32(positive)).mean()


def at_least_float32(logits: Tensor) -> Tensor:
    """Half precision is raised to float32, also inside autocast; the rest passes."""
    return logits.float() if logits.dtype in (torch.float16, torch.bfloat16) else logits


def series_of(s: Tensor, order: int) -> Tensor:
    """Σ_{i=1..order} s^i / i, by Horner: s (1 + s (1/2 + s (1/3 + ...)))."""
    if order < 1:
        raise ConfigError(f"the Taylor order must be 1 or more. Got {order} instead; try 2")
    series = torch.zeros_like(s)
    for i in range(order, 0, -1):
        series = s * (1 / i + series)
    return series
