"""The global proportional random stratified sampler: one epoch's pseudo-batches."""

from __future__ import annotations

import torch
from torch import Tensor


def pseudo_batches(
    positive: Tensor, unlabeled: Tensor, count: int, generator: torch.Generator
) -> list[tuple[Tensor, Tensor]]:
    """Pairs of positive and unlabeled indices, each class spread evenly over the batches.

    positive: (n_p,) and unlabeled: (n_u,) indices. Both are shuffled and cut into chunks of
    floor(n / count); batches run until one class is exhausted, so a shorter last batch remains
    where both classes leave a rest. Every index is used at most once. With fewer indices of a
    class than `count` there are fewer batches.

    >>> g = torch.Generator().manual_seed(0)
    >>> batches = pseudo_batches(torch.arange(100), torch.arange(4000), 10, g)
    >>> len(batches), [len(part) for part in batches[0]]
    (10, [10, 400])
    """
    count = min(count, len(positive), len(unlabeled))
    chunks = [
        indices[torch.randperm(len(indices), generator=generator)].split(len(indices) // count)
        for indices in (positive, unlabeled)
    ]
    batches = list(zip(*chunks, strict=False))
    order = torch.randperm(len(batches), generator=generator)
    return [(batches[i][0], batches[i][1]) for i in order.tolist()]
