"""How PU extra trees grow and vote (Wilton et al., NeurIPS 2022), compiled by numba.

A node that holds a of the n_p positives and b of the n_u unlabeled samples weighs Wp = π a / n_p
as positive and Wn = b / n_u - Wp as negative, and v = Wp / (Wp + Wn) of it is positive.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np
from numba import njit
from numpy.typing import NDArray

Array = NDArray[np.float64]
Samples = NDArray[np.int32]
Places = NDArray[np.int32]  # of features, or of nodes in their tree
Mask = NDArray[np.bool_]
Function = TypeVar("Function", bound=Callable[..., Any])

EDGE = 1e-12  # a share v this close to 1/2 or 1 is there, but for rounding


def compiled(function: Function) -> Function:
    """Compile a function at its first call, and keep that on the disk where one may write."""
    try:
        return cast("Function", njit(cache=True, nogil=True)(function))
    except RuntimeError:  # numba's, when it finds no place
        return cast("Function", njit(nogil=True)(function))


class Risk(NamedTuple):
    """How nodes are judged by the positives and the unlabeled samples in them."""

    prior: float
    n_positive: int
    n_unlabeled: int
    nonnegative: bool = True  # nnPU: no node's risk is below 0
    entropy: bool = False  # the logistic impurity; else the quadratic one


@compiled
def positive_share(a: int, b: int, risk: Risk) -> float:
    """v = Wp / (Wp + Wn) of a node; inf without unlabeled samples.

    >>> risk = Risk(prior=0.3, n_positive=10, n_unlabeled=100)
    >>> round(positive_share(5, 20, risk), 3), positive_share(5, 0, risk)
    (0.75, inf)
    """
    if b == 0:
        return math.inf
    share = (risk.prior * a / risk.n_positive) / (b / risk.n_unlabeled)
    for edge in (0.5, 1.0):
        if abs(share - edge) < EDGE:
            return edge
    return share


@compiled
def impurity_of(a: int, b: int, risk: Risk) -> float:
    """The risk of a node if it were a leaf; with nnPU it is 0 where v > 1.

    Quadratic: 4 (Wp + Wn) v (1 - v). Logistic: -(Wp + Wn) (v ln v + (1 - v) ln (1 - v)), which
    is -inf where v > 1.
    """
    share, weight = positive_share(a, b, risk), b / risk.n_unlabeled
    if risk.nonnegative and share > 1:
        return 0.0
    if b == 0:
        return -math.inf
    if not risk.entropy:
        return 4 * weight * share * (1 - share)
    if share > 1:
        return -math.inf
    if share in (0.0, 1.0):
        return 0.0
    return -weight * (share * math.log(share) + (1 - share) * math.log(1 - share))


@compiled
def random_cut(values: NDArray[Any], rng: np.random.Generator) -> float:
    """A cut between the second-smallest and second-largest gaps of values; nan if all are equal.

    With the two smallest distinct values a1 < a2 and the two largest c1 < c2, it is uniform from
    a1 + 0.4 (a2 - a1) to c1 + 0.6 (c2 - c1).
    """
    a1 = a2 = math.inf
    c1 = c2 = -math.inf
    for value in values:
        if value < a1:
            a1, a2 = value, a1
        elif a1 < value < a2:
            a2 = value
        if value > c2:
            c1, c2 = c2, value
        elif c1 < value < c2:
            c1 = value
    if a1 == c2:
        return math.nan
    low, high = a1 + 0.4 * (a2 - a1), c1 + 0.6 * (c2 - c1)
    return low + rng.random() * (high - low)


class Split(NamedTuple):
    """A split of a node: samples of at most `cut` go left; risk is that of both sides.

    feature is -1 where no feature varies.
    """

    feature: int
    cut: float
    risk: float


class Scratch(NamedTuple):
    """Memory that all nodes of a tree use in turn.

    features: (d,) all features in order, between nodes; swaps: (d,); values: (n,), as the
    features; samples: (n,).
    """

    features: NDArray[np.int64]
    swaps: NDArray[np.int64]
    values: NDArray[Any]
    samples: Samples


@compiled
def find_split(
    columns: NDArray[Any],
    samples: Samples,
    a: int,
    risk: Risk,
    tries: int,
    rng: np.random.Generator,
    scratch: Scratch,
) -> Split:
    """The best of one random cut on each of `tries` random features that vary in a node.

    columns: (d, n), all samples by feature. samples: those of the node, its `a` positives first.
    Features are drawn as by Fisher and Yates; constant ones are passed over and others drawn.
    """
    features, swaps, values = scratch.features, scratch.swaps, scratch.values[: samples.size]
    b = samples.size - a
    best = Split(-1, 0.0, math.inf)
    seen = tried = 0
    while seen < features.size and tried < tries:
        chosen = seen + int(rng.random() * (features.size - seen))
        features[seen], features[chosen] = features[chosen], features[seen]
        swaps[seen] = chosen
        feature = features[seen]
        seen += 1
        for i, sample in enumerate(samples):
            values[i] = columns[feature, sample]
        cut = random_cut(values, rng)
        if math.isnan(cut):
            continue
        tried += 1
        left_a, left_b = count_up_to(values[:a], cut), count_up_to(values[a:], cut)
        both = impurity_of(left_a, left_b, risk) + impurity_of(a - left_a, b - left_b, risk)
        if both < best.risk:
            best = Split(feature, cut, both)
    for place in range(seen - 1, -1, -1):
        chosen = swaps[place]
        features[place], features[chosen] = features[chosen], features[place]
    return best


@compiled
def count_up_to(values: NDArray[Any], cut: float) -> int:
    """How many values are at most a cut."""
    count = 0
    for value in values:
        count += value <= cut
    return count


@compiled
def divide_(
    samples: Samples, a: int, column: NDArray[Any], cut: float, spare: Samples
) -> tuple[int, int]:
    """Put a node's samples that go left before the rest; how many positives, others those are.

    The `a` positives stand first before, and on each side after. spare: memory, (n,).
    """
    left = right = left_a = 0
    for i, sample in enumerate(samples):
        if column[sample] <= cut:
            samples[left] = sample
            left += 1
            left_a += i < a
        else:
            spare[right] = sample
            right += 1
    samples[left:] = spare[:right]
    return left_a, left - left_a


class Tree(NamedTuple):
    """A tree as arrays over its nodes, the root first.

    feature: -1 at a leaf; cut: samples at most this go left; left, right: the children;
    vote: whether a leaf is positive; impurity: the risk of the node; gain: how much its split
    lowers the risk, where a risk below 0 (which is uPU's) counts as 0.
    """

    feature: Places
    cut: Array
    left: Places
    right: Places
    vote: Mask
    impurity: Array
    gain: Array


@compiled
def grow_tree(
    columns: NDArray[Any],
    samples: Samples,
    risk: Risk,
    rng: np.random.Generator,
    tries: int,
    max_depth: float,
    min_samples_leaf: int,
) -> Tree:
    """Grow a tree, the left side of a node before the right one.

    columns: (d, n), the samples by feature. samples: (n,), their numbers, all positives first.
    """
    width, count = columns.shape
    samples = samples.copy()
    scratch = Scratch(
        np.arange(width),
        np.empty(width, np.int64),
        np.empty(count, columns.dtype),
        np.empty_like(samples),
    )
    room = 2 * count - 1
    feature, cut = np.full(room, -1, np.int32), np.zeros(room)
    left, right = np.zeros(room, np.int32), np.zeros(room, np.int32)
    vote, impurity, gain = np.zeros(room, np.bool_), np.zeros(room), np.zeros(room)

    # Of each node that waits: its place in the tree and in the samples, a, b and depth.
    waiting = np.zeros((count + 1, 5), np.int64)
    waiting[0] = (0, 0, risk.n_positive, risk.n_unlabeled, 0)
    many, nodes = 1, 1
    while many:
        many -= 1
        node, start, a, b, depth = waiting[many]
        share = positive_share(a, b, risk)
        vote[node] = rng.random() < 0.5 if share == 0.5 else share > 0.5
        impurity[node] = impurity_of(a, b, risk)
        if impurity[node] <= 0 or depth >= max_depth or a + b <= min_samples_leaf:
            continue
        part = samples[start : start + a + b]
        split = find_split(columns, part, a, risk, tries, rng, scratch)
        if split.feature < 0:
            continue
        feature[node], cut[node] = split.feature, split.cut
        gain[node] = impurity[node] - max(split.risk, 0.0)
        left[node], right[node] = nodes, nodes + 1
        left_a, left_b = divide_(part, a, columns[split.feature], split.cut, scratch.samples)
        middle = start + left_a + left_b
        waiting[many] = (nodes + 1, middle, a - left_a, b - left_b, depth + 1)
        waiting[many + 1] = (nodes, start, left_a, left_b, depth + 1)
        many, nodes = many + 2, nodes + 2
    return Tree(
        feature[:nodes].copy(),
        cut[:nodes].copy(),
        left[:nodes].copy(),
        right[:nodes].copy(),
        vote[:nodes].copy(),
        impurity[:nodes].copy(),
        gain[:nodes].copy(),
    )


@compiled
def add_votes_(votes: NDArray[np.int64], tree: Tree, x: NDArray[Any]) -> None:
    """Add 1 to the votes (n,) of the samples (n, d) that a tree says are positive."""
    for i in range(len(x)):
        node = 0
        while tree.feature[node] >= 0:
            goes_left = x[i, tree.feature[node]] <= tree.cut[node]
            node = tree.left[node] if goes_left else tree.right[node]
        votes[i] += tree.vote[node]
