"""PU Extra Trees (Wilton et al., NeurIPS 2022): random trees from positives and unlabeled samples.

A node that holds a of the n_p positives and b of the n_u unlabeled samples weighs Wp = π a / n_p
as positive and Wn = b / n_u - Wp as negative, and v = Wp / (Wp + Wn) of it is positive. Trees
grow many nodes at a time: numpy sees arrays of all their samples, a few features at once.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, Literal, Self, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import entr
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import check_is_fitted, validate_data

from thonecls.errors import ConfigError, LabelError

Array = NDArray[np.float64]
IntArray = NDArray[np.int64]
Mask = NDArray[np.bool_]
Keys = NDArray[Any]  # uint8 or uint32, see `sort_keys`
Loss = Literal["nnpu", "upu"]
Impurity = Literal["quadratic", "logistic"]

BLOCK = 1 << 17  # samples × features looked at together: more would only take memory
POOL = 1 << 21  # nodes × features whose draws are held together, which bounds the memory
ROWS = 4096  # samples predicted together
MOST_TOGETHER = 10  # trees grown together; more would leave threads without work
DTYPES = (np.float32, np.uint8)  # of features that are taken as they are
COLUMNS = 64  # features turned into keys together
SIGN = np.int32(-(2**31))  # the sign bit of a float32
EDGE = 1e-12  # a share v this close to 1/2 or 1 is there, but for rounding


def quadratic(weight: Array, share: Array) -> Array:
    """4 (Wp + Wn) v (1 - v), which is 4 Wp Wn / (Wp + Wn)."""
    return np.asarray(4 * weight * share * (1 - share))


def logistic(weight: Array, share: Array) -> Array:
    """The entropy -(Wp + Wn) (v ln v + (1 - v) ln (1 - v)); -inf where v > 1."""
    return np.asarray(weight * (entr(share) + entr(1 - share)))


IMPURITIES: dict[Impurity, Callable[[Array, Array], Array]] = {
    "quadratic": quadratic,
    "logistic": logistic,
}


@dataclass(frozen=True)
class Risk:
    """How nodes are judged by the a positives and b unlabeled samples in them.

    >>> risk = Risk(prior=0.3, n_positive=10, n_unlabeled=100)
    >>> a, b = np.array([5, 5, 9]), np.array([20, 0, 20])
    >>> risk.share(a, b).round(2), risk.impurities(a, b).round(2)
    (array([0.75,  inf, 1.35]), array([0.15, 0.  , 0.  ]))
    """

    prior: float
    n_positive: int
    n_unlabeled: int
    loss: Loss = "nnpu"
    impurity: Impurity = "quadratic"

    def share(self, a: IntArray, b: IntArray) -> Array:
        """v = Wp / (Wp + Wn), the positive share of nodes; inf without unlabeled samples."""
        share: Array = np.full(np.shape(b), np.inf)
        positive, weight = self.prior * a / self.n_positive, b / self.n_unlabeled
        np.divide(positive, weight, out=share, where=b > 0)
        for edge in (0.5, 1.0):
            share[np.abs(share - edge) < EDGE] = edge
        return share

    def impurities(self, a: IntArray, b: IntArray) -> Array:
        """The risk of nodes if they were leaves; with nnPU it is 0 where v > 1."""
        measure, share = IMPURITIES[self.impurity], self.share(a, b)
        if self.loss == "nnpu":
            return measure(b / self.n_unlabeled, np.minimum(share, 1))
        finite = measure(b / self.n_unlabeled, np.where(b > 0, share, 1))
        return np.where(b > 0, finite, -np.inf)

    def votes(self, a: IntArray, b: IntArray, rng: np.random.Generator) -> Mask:
        """Whether leaves are positive: v > 1/2, or at 1/2 by a coin."""
        share = self.share(a, b)
        votes, ties = share > 0.5, share == 0.5
        votes[ties] = rng.random(int(ties.sum())) < 0.5
        return votes


def sort_keys(x: NDArray[Any]) -> Keys:
    """Unsigned integers in the order of the values: uint8 as they are, float32 by their bits.

    On integers the second smallest value costs a subtraction, see `extremes`.

    >>> sort_keys(np.array([0.0, -1.0, 2.0], dtype=np.float32)).argsort()
    array([1, 0, 2])
    """
    if x.dtype == np.uint8:
        return x
    bits = (x + np.float32(0)).view(np.int32)  # + 0 makes -0 and 0 one value
    # All bits of a negative value are turned round, and of any other the sign alone.
    return (bits ^ (bits >> 31 | SIGN)).view(np.uint32)


def key_values(keys: Keys) -> Array:
    """The values that `sort_keys` gave these keys."""
    if keys.dtype == np.uint8:
        return keys.astype(np.float64)
    bits = keys.view(np.int32)
    return (bits ^ (~bits >> 31 | SIGN)).view(np.float32).astype(np.float64)


def feature_keys(x: NDArray[Any]) -> Keys:
    """The keys of samples (n, d), feature by feature, (d, n): the only copy that trees need."""
    keys = np.empty(x.shape[::-1], dtype=np.uint8 if x.dtype == np.uint8 else np.uint32)
    for start in range(0, len(keys), COLUMNS):
        part = slice(start, start + COLUMNS)
        keys[part] = sort_keys(x[:, part]).T
    return keys


def cut_keys(cuts: NDArray[np.float32], dtype: np.dtype[Any]) -> Keys:
    """Cuts as keys: a uint8 is at most a cut if it is at most the cut's whole part."""
    return cuts.astype(np.uint8) if dtype == np.uint8 else sort_keys(cuts)


@dataclass(frozen=True, eq=False)
class Nodes:
    """Nodes at one depth and the samples in them.

    ids: (m,) their places in the tree; a, b: (m,) how many positives and unlabeled samples they
    hold; samples: (a.sum() + b.sum(),) node by node, and in a node the positives first.
    """

    ids: IntArray
    a: IntArray
    b: IntArray
    samples: IntArray
    depth: int

    @property
    def sizes(self) -> IntArray:
        return self.a + self.b

    def select(self, keep: Mask) -> Nodes:
        """Only the nodes of a mask (m,)."""
        if keep.all():
            return self
        samples = self.samples[np.repeat(keep, self.sizes)]
        return Nodes(self.ids[keep], self.a[keep], self.b[keep], samples, self.depth)

    def halves(self) -> list[Nodes]:
        """The first and the second half of the nodes."""
        first = np.arange(self.ids.size) < self.ids.size // 2
        return [self.select(first), self.select(~first)]

    def spread(self, values: NDArray[Any]) -> NDArray[Any]:
        """One value for each node as one for each of its samples: (c, m) -> (c, n)."""
        return np.repeat(values, self.sizes, axis=1)

    def gather(self, keys: Keys, features: IntArray) -> Keys:
        """Keys (c, n) of the samples, each at its own node's features (c, m)."""
        return keys.reshape(-1)[self.spread(features * keys.shape[1]) + self.samples]

    def count(self, mask: Mask) -> tuple[IntArray, IntArray]:
        """How many positives and unlabeled samples a mask (c, n) holds in each node: (c, m)."""
        ends = np.stack([self.a, self.b], axis=1).cumsum() - 1
        counts = mask.cumsum(axis=1)[:, ends]
        counts[:, 1:] -= counts[:, :-1]
        return counts[:, ::2], counts[:, 1::2]

    def split(self, left: Mask, first: int) -> Nodes:
        """The children: all left ones, then all right ones, numbered from `first`.

        left: (n,), the samples that go there.
        """
        a, b = (counts[0] for counts in self.count(left[np.newaxis]))
        return Nodes(
            first + np.arange(2 * self.ids.size),
            np.concatenate([a, self.a - a]),
            np.concatenate([b, self.b - b]),
            np.concatenate([self.samples[left], self.samples[~left]]),
            self.depth + 1,
        )


def extremes(values: Keys, nodes: Nodes) -> Keys:
    """The two smallest and the two largest distinct keys in each node: (c, n) -> (4, c, m).

    Counted from the key after the smallest, the smallest itself wraps round to the largest
    integer, so that a minimum passes it over. Where all keys are equal, all four are that key.
    """
    starts = nodes.sizes.cumsum() - nodes.sizes
    a1 = np.minimum.reduceat(values, starts, axis=1)
    c2 = np.maximum.reduceat(values, starts, axis=1)
    after, before = a1 + 1, c2 - 1
    a2 = after + np.minimum.reduceat(values - nodes.spread(after), starts, axis=1)
    c1 = before - np.minimum.reduceat(nodes.spread(before) - values, starts, axis=1)
    return np.stack([a1, a2, c1, c2])


def cuts_between(a1: Array, a2: Array, c1: Array, c2: Array, where: Array) -> Array:
    """Cuts from a1 + 0.4 (a2 - a1), at where = 0, to c1 + 0.6 (c2 - c1), at where = 1."""
    low, high = a1 + 0.4 * (a2 - a1), c1 + 0.6 * (c2 - c1)
    return np.asarray(low + where * (high - low))


def round_down(cuts: Array) -> NDArray[np.float32]:
    """The float32 at or next below each cut: it parts float32 values as the cut itself does."""
    rounded = cuts.astype(np.float32)
    return np.where(rounded > cuts, np.nextafter(rounded, np.float32(-np.inf)), rounded)


def draw_features_(
    pool: NDArray[np.int32], rows: IntArray, first: int, count: int, rng: np.random.Generator
) -> IntArray:
    """The next features, (count, rows), in the random order of each node: Fisher and Yates.

    pool: (m, d), the features of each node, shuffled as far as they are drawn.
    """
    dice = rng.random((count, rows.size))
    for column, die in enumerate(dice, start=first):
        chosen = column + (die * (pool.shape[1] - column)).astype(np.int64)
        pool[rows, column], pool[rows, chosen] = pool[rows, chosen], pool[rows, column]
    return pool[rows, first : first + count].T.astype(np.int64)


@dataclass(frozen=True, eq=False)
class Splits:
    """The best split of each node, (m,): total is the risk of both sides, feature -1 is none."""

    feature: IntArray
    cut: NDArray[np.float32]
    total: Array

    def improve_(
        self, rows: IntArray, feature: IntArray, cut: NDArray[np.float32], total: Array
    ) -> None:
        """Take over the best of some candidates (c, rows) where they are better."""
        best = (total.argmin(axis=0), np.arange(rows.size))
        better = total[best] < self.total[rows]
        rows = rows[better]
        self.feature[rows] = feature[best][better]
        self.cut[rows] = cut[best][better]
        self.total[rows] = total[best][better]

    def select(self, keep: Mask) -> Splits:
        """Only those of a mask (m,)."""
        return Splits(self.feature[keep], self.cut[keep], self.total[keep])


def find_splits(
    keys: Keys, nodes: Nodes, risk: Risk, tries: int, rng: np.random.Generator
) -> Splits:
    """The best of one random cut on each of `tries` random features that vary in the node.

    keys: (d, samples). Features that are constant in a node are passed over and others drawn.
    """
    count, width = nodes.ids.size, len(keys)
    pool = np.tile(np.arange(width, dtype=np.int32), (count, 1))
    splits = Splits(np.full(count, -1), np.zeros(count, np.float32), np.full(count, np.inf))
    rows, missing, seen = np.arange(count), np.full(count, tries), 0
    while rows.size and seen < width:
        batch = min(max(1, BLOCK // nodes.samples.size), int(missing.max()), width - seen)
        feature = draw_features_(pool, rows, seen, batch, rng)
        values = nodes.gather(keys, feature)
        a1, a2, c1, c2 = key_values(extremes(values, nodes))
        varies = a1 < c2
        cut = round_down(cuts_between(a1, a2, c1, c2, rng.random(feature.shape)))
        a, b = nodes.count(values <= nodes.spread(cut_keys(cut, keys.dtype)))
        sides = np.stack([a, nodes.a - a]), np.stack([b, nodes.b - b])
        total = risk.impurities(*sides).sum(axis=0)
        total[~varies | (varies.cumsum(axis=0) > missing)] = np.inf
        splits.improve_(rows, feature, cut, total)
        seen, missing = seen + batch, missing - varies.sum(axis=0)
        going = missing > 0
        rows, missing, nodes = rows[going], missing[going], nodes.select(going)
    return splits


@dataclass(frozen=True, eq=False)
class Trees:
    """Trees as arrays over their nodes, the roots first.

    feature: -1 at a leaf; cut: samples at most this go left; left, right: the children;
    vote: whether a leaf is positive; impurity: the risk of the node; gain: how much its split
    lowers the risk, where a risk below 0 (which is uPU's) counts as 0.
    """

    roots: int
    feature: NDArray[np.int32]
    cut: NDArray[np.float32]
    left: NDArray[np.int32]
    right: NDArray[np.int32]
    vote: Mask
    impurity: Array
    gain: Array

    @classmethod
    def of_leaves(cls, roots: int, size: int) -> Trees:
        """Room for nodes, each a leaf so far."""
        left, right = np.zeros((2, size), dtype=np.int32)
        impurity, gain = np.zeros((2, size))
        feature, cut = np.full(size, -1, dtype=np.int32), np.zeros(size, dtype=np.float32)
        vote = np.zeros(size, dtype=bool)
        return cls(roots, feature, cut, left, right, vote, impurity, gain)

    def first(self, size: int) -> Trees:
        """Only the first nodes."""
        arrays = [getattr(self, part.name) for part in fields(self)[1:]]
        return Trees(self.roots, *(array[:size].copy() for array in arrays))

    def judge_(self, nodes: Nodes, risk: Risk, rng: np.random.Generator) -> None:
        """Set what these nodes are as leaves."""
        self.impurity[nodes.ids] = risk.impurities(nodes.a, nodes.b)
        self.vote[nodes.ids] = risk.votes(nodes.a, nodes.b, rng)

    def branch_(self, nodes: Nodes, splits: Splits, children: Nodes) -> None:
        """Set the splits and the children of nodes."""
        ids = nodes.ids
        self.feature[ids], self.cut[ids] = splits.feature, splits.cut
        self.left[ids], self.right[ids] = children.ids.reshape(2, -1)
        self.gain[ids] = self.impurity[ids] - np.maximum(splits.total, 0)

    def count_votes(self, x: NDArray[Any]) -> IntArray:
        """How many trees say "positive" of samples (n, d): (n,)."""
        node = np.repeat(np.arange(self.roots), len(x))
        going = np.arange(node.size)
        while True:
            going = going[self.feature[node[going]] >= 0]
            if going.size == 0:
                return np.asarray(self.vote[node].reshape(self.roots, -1).sum(axis=0))
            at = node[going]
            left = x[going % len(x), self.feature[at]] <= self.cut[at]
            node[going] = np.where(left, self.left[at], self.right[at])


def grow_trees(
    keys: Keys,
    positive: Mask,
    risk: Risk,
    rng: np.random.Generator,
    *,
    count: int = 1,
    tries: int,
    max_depth: float = math.inf,
    min_samples_leaf: int = 1,
) -> Trees:
    """Grow trees side by side, each on all samples: keys (d, n), which are positives (n,)."""
    samples = np.tile(np.argsort(~positive, kind="stable"), count)
    a, b = np.full(count, risk.n_positive), np.full(count, risk.n_unlabeled)
    roots = Nodes(np.arange(count), a, b, samples, depth=0)
    trees = Trees.of_leaves(count, 2 * samples.size)
    trees.judge_(roots, risk, rng)
    waiting, size = [roots], count
    while waiting:
        nodes = waiting.pop()
        nodes = nodes.select((trees.impurity[nodes.ids] > 0) & (nodes.sizes > min_samples_leaf))
        if nodes.ids.size > max(1, POOL // len(keys)):
            waiting += nodes.halves()
        elif nodes.ids.size and nodes.depth < max_depth:
            splits = find_splits(keys, nodes, risk, tries, rng)
            varied = splits.feature >= 0
            nodes, splits = nodes.select(varied), splits.select(varied)
            children = nodes.split(goes_left(keys, nodes, splits), size)
            size += children.ids.size
            trees.branch_(nodes, splits, children)
            trees.judge_(children, risk, rng)
            waiting.append(children)
    return trees.first(size)


def goes_left(keys: Keys, nodes: Nodes, splits: Splits) -> Mask:
    """Which samples of nodes their splits send left: (n,)."""
    cuts = cut_keys(splits.cut, keys.dtype)
    values = nodes.gather(keys, splits.feature[np.newaxis])[0]
    return np.asarray(values <= np.repeat(cuts, nodes.sizes))


def _count(value: object) -> bool:
    """Whether a setting is a whole number from 1."""
    return isinstance(value, int | np.integer) and value is not True and bool(value >= 1)


def _share(value: object) -> bool:
    """Whether a setting is a number in (0, 1]."""
    return isinstance(value, float | np.floating) and bool(0 < value <= 1)


# What each setting must be, in words and as a test.
RULES: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "prior": (
        "the share of positives among the unlabeled, in (0, 1): a known one, or an estimate, "
        "such as one of thonecls.priors",
        lambda value: _share(value) and value < 1,
    ),
    "loss": ("'nnpu' or 'upu'", lambda value: value in get_args(Loss)),
    "impurity": ("'quadratic' or 'logistic'", lambda value: value in get_args(Impurity)),
    "n_estimators": ("a whole number from 1; try 100", _count),
    "max_depth": ("a whole number from 1, or None", lambda value: value is None or _count(value)),
    "min_samples_leaf": ("a whole number from 1", _count),
    "max_features": (
        "'sqrt', a whole number from 1, a share in (0, 1], or None for all",
        lambda value: value is None or value == "sqrt" or _count(value) or _share(value),
    ),
}


class PUExtraTreesClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # no types
    """Extremely randomised trees from positive and unlabeled samples (Wilton et al. 2022).

    prior: the share π of positives among the unlabeled, in (0, 1). It matters: the default is a
    stand-in; give yours, or estimate it (`thonecls.priors`). loss: "nnpu", where the risk of a
    node is at least 0, or "upu". impurity: "quadratic" (Gini) or "logistic" (entropy).
    min_samples_leaf: a node of so many samples or fewer is not split. max_features: how many
    random features a node tries, "sqrt" (of all, rounded up), a count, a share of all in (0, 1],
    or None for all. Features are taken as float32 or, if they are, as uint8.

    Learned: classes_, trees_, feature_importances_ (the risk that splits on a feature take away,
    as shares of 1), n_features_in_.

    >>> x = np.array([[0.0], [0.1], [1.0], [1.1], [0.9], [0.2]], dtype=np.float32)
    >>> y = np.array([1, 1, 0, 0, 0, 0])  # two labelled; of the unlabeled, one more is positive
    >>> forest = PUExtraTreesClassifier(prior=0.25, n_estimators=9, random_state=0).fit(x, y)
    >>> forest.predict(np.array([[0.05], [1.0]]))
    array([1, 0])
    """

    def __init__(
        self,
        prior: float = 0.5,
        *,
        loss: Loss = "nnpu",
        impurity: Impurity = "quadratic",
        n_estimators: int = 100,
        max_depth: int | None = None,
        min_samples_leaf: int = 1,
        max_features: Literal["sqrt"] | float | None = "sqrt",
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.prior = prior
        self.loss = loss
        self.impurity = impurity
        self.n_estimators = n_estimators
        self.max_depth = max_depth
        self.min_samples_leaf = min_samples_leaf
        self.max_features = max_features
        self.n_jobs = n_jobs
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:  # noqa: N803
        """Learn from samples (n, d) and labels (n,): the greater of two values is "positive".

        That is 1 of {1, 0} or {1, -1}, and True; the rest is unlabeled.
        """
        self._check_settings()
        with np.errstate(over="ignore"):  # what float32 cannot hold is an error, not a warning
            x, labels = validate_data(self, X, y, dtype=DTYPES)
        self.classes_, positive = binary_labels(labels)
        n_positive = int(positive.sum())
        risk = Risk(
            float(self.prior), n_positive, positive.size - n_positive, self.loss, self.impurity
        )
        keys = feature_keys(x)
        limits = {
            "tries": self._tries(len(keys)),
            "max_depth": math.inf if self.max_depth is None else self.max_depth,
            "min_samples_leaf": self.min_samples_leaf,
        }
        # Few samples leave numpy idle between its calls, so that several trees grow together.
        together = min(max(1, BLOCK // positive.size), MOST_TOGETHER)
        counts = np.diff(np.arange(0, self.n_estimators, together), append=self.n_estimators)
        seeds = check_random_state(self.random_state).randint(2**31 - 1, size=counts.size)
        self.trees_: list[Trees] = Parallel(n_jobs=self.n_jobs, prefer="threads")(
            delayed(grow_trees)(
                keys, positive, risk, np.random.default_rng(seed), count=count, **limits
            )
            for count, seed in zip(counts, seeds, strict=True)
        )
        self.feature_importances_ = _importances(self.trees_, len(keys))
        return self

    def predict_proba(self, X: ArrayLike) -> Array:  # noqa: N803
        """The share of trees that vote unlabeled and positive: (n, 2)."""
        positive = self._positive_votes(X)
        return np.stack([1 - positive, positive], axis=1)

    def decision_function(self, X: ArrayLike) -> Array:  # noqa: N803
        """The share of votes for minus that of votes against, from -1 to 1: (n,)."""
        return 2 * self._positive_votes(X) - 1

    def predict(self, X: ArrayLike) -> NDArray[Any]:  # noqa: N803
        """What most trees say, in the labels of `fit`: (n,). A tie is not positive."""
        positive = self._positive_votes(X) > 0.5
        return np.asarray(self.classes_[positive.astype(np.intp)])

    def _positive_votes(self, X: ArrayLike) -> Array:  # noqa: N803
        """The share of trees that vote positive: (n,)."""
        check_is_fitted(self)
        with np.errstate(over="ignore"):  # as in `fit`
            x = validate_data(self, X, reset=False, dtype=DTYPES)
        parts = Parallel(n_jobs=self.n_jobs, prefer="threads")(
            delayed(_count_votes)(self.trees_, x[start : start + ROWS])
            for start in range(0, len(x), ROWS)
        )
        return np.asarray(np.concatenate(parts) / sum(trees.roots for trees in self.trees_))

    def _tries(self, width: int) -> int:
        """How many of so many features a node tries."""
        if self.max_features is None:
            return width
        if isinstance(self.max_features, str):
            return math.ceil(math.sqrt(width))
        if isinstance(self.max_features, int | np.integer):
            return min(int(self.max_features), width)
        return math.ceil(float(self.max_features) * width)

    def _check_settings(self) -> None:
        """Refuse settings out of range."""
        for name, (rule, holds) in RULES.items():
            value = getattr(self, name)
            if not holds(value):
                raise ConfigError(f"{name} must be {rule}. Got {value!r} instead")


def binary_labels(labels: NDArray[Any]) -> tuple[NDArray[Any], Mask]:
    """The two values of labels, the lesser first, and where the greater stands."""
    check_classification_targets(labels)
    classes, codes = np.unique(labels, return_inverse=True)
    if classes.size > 2:
        raise LabelError(
            "Only binary classification is supported: 1 for a labelled positive, 0 or -1 for "
            f"unlabeled. The type of the target is multiclass, of {classes.size} classes; "
            "map the classes that you do not look for to 0"
        )
    if classes.size < 2:
        raise LabelError(
            f"y must hold positives and unlabeled samples. Got one class, {classes[0]}, instead; "
            "add samples of the other"
        )
    return classes, codes == 1


def _importances(forest: list[Trees], width: int) -> Array:
    """What the splits on each feature gain over all trees, as shares of 1: (width,).

    A loss, possible as nnPU forgives a child what it cannot forgive the parent, counts as 0.
    """
    total = np.zeros(width)
    for trees in forest:
        inner = trees.feature >= 0
        total += np.bincount(trees.feature[inner], trees.gain[inner], minlength=width)
    total = np.maximum(total, 0)
    return np.asarray(total / (total.sum() or 1))


def _count_votes(forest: list[Trees], x: NDArray[Any]) -> IntArray:
    """How many trees of all say "positive" of samples (n, d): (n,)."""
    return np.asarray(sum(trees.count_votes(x) for trees in forest))
