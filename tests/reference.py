"""Algorithm 1 of the paper, written plainly: whole-scene logits, dense masks, no shortcuts.

So are collages and masked norms. Slow on purpose. The package's training step must agree with it.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from thonecls.method.collage import Collage, IntArray, Pool
from thonecls.method.config import TrainConfig
from thonecls.method.net import FreeOCNet


def dense_objective(
    student: FreeOCNet,
    teacher: FreeOCNet,
    cube: Tensor,
    batch: tuple[Tensor, Tensor],
    c: TrainConfig,
) -> tuple[Tensor, Tensor]:
    """The total loss and its consistency part, from masks over the whole scene."""
    masks = []
    for pixels in batch:
        mask = torch.zeros(cube.shape[1] * cube.shape[2], dtype=cube.dtype)
        mask[pixels] = 1
        masks.append(mask.view(cube.shape[1:]))
    positive, unlabeled = masks
    student_p = torch.sigmoid(student(cube[None])[0])
    with torch.no_grad():
        teacher_p = torch.sigmoid(teacher(cube[None])[0])
    s = 1 - (student_p * unlabeled).sum() / unlabeled.sum()
    loss = -(torch.log(student_p) * positive).sum() / positive.sum()
    for i in range(1, c.order + 1):
        loss = loss - s**i / i
    kl = torch.zeros_like(student_p)
    for a, b in ((student_p, teacher_p), (1 - student_p, 1 - teacher_p)):
        kl = kl + a * torch.log(a / b) + b * torch.log(b / a)
    consistency = (kl * (positive + unlabeled)).sum() / (positive.sum() + unlabeled.sum())
    return loss + c.beta * consistency, consistency


class PlainTrainer:
    """SGD with momentum, clipping, a rate that falls by epoch, and the EMA, spelled out."""

    def __init__(self, student: FreeOCNet, teacher: FreeOCNet, config: TrainConfig) -> None:
        self.student, self.teacher, self.config = student, teacher, config
        self.velocity = [torch.zeros_like(p) for p in student.parameters()]

    def step(self, cube: Tensor, batch: tuple[Tensor, Tensor], epoch: int) -> float:
        c = self.config
        loss, _ = dense_objective(self.student, self.teacher, cube, batch, c)
        gradients = torch.autograd.grad(loss, list(self.student.parameters()))
        norm = torch.sqrt(sum((g**2).sum() for g in gradients))  # type: ignore[arg-type]
        rate = c.rate * c.rate_decay**epoch
        alpha = min(1 - 1 / (epoch + 1), c.alpha)
        with torch.no_grad():
            for i, p in enumerate(self.student.parameters()):
                gradient = gradients[i] * torch.clamp(c.clip / norm, max=1)
                gradient = gradient + c.weight_decay * p
                self.velocity[i] = c.momentum * self.velocity[i] + gradient
                p.sub_(rate * self.velocity[i])
            _average(self.teacher, self.student, alpha)
        return loss.item()


def _average(teacher: nn.Module, student: nn.Module, alpha: float) -> None:
    for t, s in zip(teacher.parameters(), student.parameters(), strict=True):
        t.copy_(alpha * t + (1 - alpha) * s)


def plain_cut(
    pool: Pool,
    positives: IntArray,
    random_blocks: int,
    block: int,
    rng: np.random.Generator,
    margin: int = 0,
    gain: float = 0.0,
) -> Collage:
    """A collage block by block, with numbers drawn one by one and every positive marked."""

    def begin(at: int, length: int) -> int:
        return max(0, min(at - margin - int(rng.integers(block - 2 * margin)), length - block))

    def laid(piece: NDArray[Any], way: int) -> NDArray[Any]:
        missing = [(0, block - length) for length in piece.shape[-2:]]
        whole = np.pad(piece, [(0, 0)] * (piece.ndim - 2) + missing)
        turned = np.rot90(whole, way % 4, (-2, -1))
        return turned[..., ::-1] if way >= 4 else turned

    count = len(positives) + random_blocks
    columns = math.ceil(math.sqrt(count))
    rows = -(-count // columns)
    anywhere = pool._anywhere(rows * columns - len(positives), rng)
    places = np.concatenate([pool.labels[positives], anywhere])
    cube = np.empty((pool.statistics.channels, rows * block, columns * block), np.float32)
    fair = np.zeros(cube.shape[1:], dtype=bool)
    positive = np.empty(len(positives), dtype=np.int64)
    for cell, i in enumerate(rng.permutation(len(places)).tolist()):
        part, row, column = places[i].tolist()
        features, valid = pool.parts[part]
        top, left = begin(row, valid.shape[0]), begin(column, valid.shape[1])
        window = slice(top, top + block), slice(left, left + block)
        way = int(rng.integers(8))
        down, across = (block * number for number in divmod(cell, columns))
        here = slice(down, down + block), slice(across, across + block)
        cube[:, *here] = laid(features[:, *window], way)
        if i < len(positives):
            mark = np.zeros(valid.shape, dtype=bool)
            mark[row, column] = True
            (at,) = np.flatnonzero(laid(mark[window], way)).tolist()
            positive[i] = (down + at // block) * cube.shape[2] + across + at % block
        else:
            fair[here] = laid(valid[window], way)
    for cell, factor in enumerate(1 + gain * rng.standard_normal(len(places), dtype=np.float32)):
        down, across = (block * number for number in divmod(cell, columns))
        cube[:, down : down + block, across : across + block] *= factor
    row, column = np.indices(fair.shape) % block
    inner = [(at >= margin) & (at < block - margin) for at in (row, column)]
    return Collage(cube, fair, positive, np.flatnonzero(fair & inner[0] & inner[1]))


def plain_masked_norm(features: Tensor, valid: Tensor, norm: nn.GroupNorm) -> Tensor:
    """A group norm whose mean and variance are taken over the valid pixels."""
    normed = []
    for group in features.transpose(0, 1).chunk(norm.num_groups):  # (channels, N, H, W)
        known = group[:, valid[:, 0]]
        normed.append((group - known.mean()) / torch.sqrt(known.var(correction=0) + norm.eps))
    whole = torch.cat(normed).transpose(0, 1)
    return whole * norm.weight[:, None, None] + norm.bias[:, None, None]
