"""PU Extra Trees in plain Python, node by node and sample by sample: slow, short, for tests.

The same algorithm as `thonecls.images.trees`, written from the paper (Wilton et al., NeurIPS 2022)
with lists and loops alone. Both ask a source of randomness for numbers in [0, 1) alone and in the
same order, so that from the same seed they must grow the very same tree.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


class Source(Protocol):
    """Where random numbers in [0, 1) come from, such as `numpy.random.default_rng()`."""

    def random(self) -> float: ...


@dataclass
class Node:
    """A node; without children it is a leaf."""

    impurity: float
    vote: bool
    feature: int = -1
    cut: float = 0.0
    left: Node | None = None
    right: Node | None = None


@dataclass
class Setting:
    """What a tree is grown by."""

    prior: float
    loss: str = "nnpu"
    impurity: str = "quadratic"
    max_depth: float = math.inf
    min_samples_leaf: int = 1
    n_positive: int = 0
    n_unlabeled: int = 0


def positive_share(a: int, b: int, setting: Setting) -> float:
    if b == 0:
        return math.inf
    share = (setting.prior * a / setting.n_positive) / (b / setting.n_unlabeled)
    for edge in (0.5, 1.0):
        if abs(share - edge) < 1e-12:
            return edge
    return share


def impurity(a: int, b: int, setting: Setting) -> float:
    share, weight = positive_share(a, b, setting), b / setting.n_unlabeled
    if share > 1 and setting.loss == "nnpu":
        return 0.0
    if b == 0:
        return -math.inf
    if setting.impurity == "quadratic":
        return 4 * weight * share * (1 - share)
    if share > 1:
        return -math.inf
    return weight * sum(-p * math.log(p) for p in (share, 1 - share) if p > 0)


def random_cut(values: Sequence[float], source: Source) -> float:
    distinct = sorted(set(values))
    low = distinct[0] + 0.4 * (distinct[1] - distinct[0])
    high = distinct[-2] + 0.6 * (distinct[-1] - distinct[-2])
    return low + source.random() * (high - low)


def grow(
    columns: Sequence[Sequence[float]],
    positive: Sequence[bool],
    samples: list[int],
    setting: Setting,
    source: Source,
    depth: int = 0,
) -> Node:
    a = sum(positive[i] for i in samples)
    b = len(samples) - a
    share = positive_share(a, b, setting)
    vote = source.random() < 0.5 if share == 0.5 else share > 0.5
    node = Node(impurity(a, b, setting), vote)
    if node.impurity <= 0 or depth >= setting.max_depth or len(samples) <= setting.min_samples_leaf:
        return node
    best, tried, features = math.inf, 0, list(range(len(columns)))
    for place in range(len(features)):
        chosen = place + int(source.random() * (len(features) - place))
        features[place], features[chosen] = features[chosen], features[place]
        column = columns[features[place]]
        values = [column[i] for i in samples]
        if min(values) == max(values):
            continue
        cut = random_cut(values, source)
        left_a = sum(positive[i] for i in samples if column[i] <= cut)
        left_b = sum(not positive[i] for i in samples if column[i] <= cut)
        total = impurity(left_a, left_b, setting) + impurity(a - left_a, b - left_b, setting)
        if total < best:
            best, node.feature, node.cut = total, features[place], cut
        tried += 1
        if tried == math.ceil(math.sqrt(len(columns))):
            break
    if tried:
        column = columns[node.feature]
        left = [i for i in samples if column[i] <= node.cut]
        right = [i for i in samples if column[i] > node.cut]
        node.left = grow(columns, positive, left, setting, source, depth + 1)
        node.right = grow(columns, positive, right, setting, source, depth + 1)
    return node


def fit(
    rows: Sequence[Sequence[float]],
    positive: Sequence[bool],
    setting: Setting,
    source: Source,
    trees: int,
) -> list[Node]:
    setting.n_positive = sum(positive)
    setting.n_unlabeled = len(positive) - setting.n_positive
    columns, samples = list(zip(*rows, strict=True)), list(range(len(rows)))
    return [grow(columns, positive, samples, setting, source) for _ in range(trees)]


def predict(trees: Sequence[Node], row: Sequence[float]) -> bool:
    """Whether more than half of the trees vote positive."""
    votes = 0
    for node in trees:
        while node.left is not None and node.right is not None:
            node = node.left if row[node.feature] <= node.cut else node.right
        votes += node.vote
    return 2 * votes > len(trees)
