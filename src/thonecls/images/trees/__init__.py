"""PU Extra Trees (Wilton et al., NeurIPS 2022): random trees from positives and unlabeled samples.

How they grow is in `thonecls.images.trees.growth`, compiled at the first call and kept on the disk.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, Self, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import check_is_fitted, validate_data

from thonecls.errors import ConfigError, LabelError
from thonecls.extras import need

if TYPE_CHECKING:  # the compiler takes a while to import: only for those who grow trees
    from thonecls.images.trees.growth import Tree

Array = NDArray[np.float64]
IntArray = NDArray[np.int64]
Mask = NDArray[np.bool_]
Loss = Literal["nnpu", "upu"]
Impurity = Literal["quadratic", "logistic"]
Rules = dict[str, tuple[str, Callable[[Any], bool]]]  # what settings must be: words, and a test

ROWS = 4096  # samples predicted together
DTYPES = (np.float32, np.uint8)  # of features that are taken as they are


def is_count(value: object) -> bool:
    """Whether a setting is a whole number from 1."""
    return isinstance(value, int | np.integer) and value is not True and bool(value >= 1)


def _share(value: object) -> bool:
    """Whether a setting is a number in (0, 1]."""
    return isinstance(value, float | np.floating) and bool(0 < value <= 1)


def check_settings(estimator: object, rules: Rules) -> None:
    """Refuse settings of an estimator that are out of range."""
    for name, (rule, holds) in rules.items():
        value = getattr(estimator, name)
        if not holds(value):
            raise ConfigError(f"'{name}' must be {rule}. Got {value!r} instead")


RULES: Rules = {
    "prior": (
        "the share of positives among the unlabeled, in (0, 1): a known one, or an estimate, "
        "such as one of thonecls.priors",
        lambda value: _share(value) and value < 1,
    ),
    "loss": ("'nnpu' or 'upu'", lambda value: value in get_args(Loss)),
    "impurity": ("'quadratic' or 'logistic'", lambda value: value in get_args(Impurity)),
    "n_estimators": ("a whole number from 1; try 100", is_count),
    "max_depth": ("a whole number from 1, or None", lambda value: value is None or is_count(value)),
    "min_samples_leaf": ("a whole number from 1", is_count),
    "max_features": (
        "'sqrt', a whole number from 1, a share in (0, 1], or None for all",
        lambda value: value is None or value == "sqrt" or is_count(value) or _share(value),
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
        check_settings(self, RULES)
        with np.errstate(over="ignore"):  # what float32 cannot hold is an error, not a warning
            x, labels = validate_data(self, X, y, dtype=DTYPES)
        self.classes_, positive = binary_labels(labels)
        n_positive = int(positive.sum())
        need("numba", "PUExtraTreesClassifier")
        from thonecls.images.trees.growth import Risk, grow_tree

        risk = Risk(
            float(self.prior),
            n_positive,
            positive.size - n_positive,
            nonnegative=self.loss == "nnpu",
            entropy=self.impurity == "logistic",
        )
        columns = np.ascontiguousarray(x.T)
        samples = np.argsort(~positive, kind="stable").astype(np.int32)
        limits = (
            self._tries(len(columns)),
            math.inf if self.max_depth is None else float(self.max_depth),
            int(self.min_samples_leaf),
        )
        seeds = check_random_state(self.random_state).randint(2**31 - 1, size=self.n_estimators)
        self.trees_: list[Tree] = Parallel(n_jobs=self.n_jobs, prefer="threads")(
            delayed(grow_tree)(columns, samples, risk, np.random.default_rng(seed), *limits)
            for seed in seeds
        )
        self.feature_importances_ = _importances(self.trees_, len(columns))
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
        return np.asarray(np.concatenate(parts) / len(self.trees_))

    def _tries(self, width: int) -> int:
        """How many of so many features a node tries."""
        if self.max_features is None:
            return width
        if isinstance(self.max_features, str):
            return math.ceil(math.sqrt(width))
        if isinstance(self.max_features, int | np.integer):
            return min(int(self.max_features), width)
        return math.ceil(float(self.max_features) * width)


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


def _importances(forest: list[Tree], width: int) -> Array:
    """What the splits on each feature gain over all trees, as shares of 1: (width,).

    A loss, possible as nnPU forgives a child what it cannot forgive the parent, counts as 0.
    """
    total = np.zeros(width)
    for tree in forest:
        inner = tree.feature >= 0
        total += np.bincount(tree.feature[inner], tree.gain[inner], minlength=width)
    total = np.maximum(total, 0)
    return np.asarray(total / (total.sum() or 1))


def _count_votes(forest: list[Tree], x: NDArray[Any]) -> IntArray:
    """How many trees of all say "positive" of samples (n, d): (n,)."""
    need("numba", "PUExtraTreesClassifier")
    from thonecls.images.trees.growth import add_votes_

    votes = np.zeros(len(x), dtype=np.int64)
    for tree in forest:
        add_votes_(votes, tree, x)
    return votes
