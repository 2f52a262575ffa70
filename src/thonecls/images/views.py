"""Views of images: mirrored or not, and moved by a few pixels, they are still of their class."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import pad

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
