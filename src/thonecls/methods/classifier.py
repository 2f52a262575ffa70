"""`PUClassifier`: the losses as a scikit-learn estimator for tables and images."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from thonecls.errors import ConfigError
from thonecls.images.data import ItemModel, Rows
from thonecls.images.networks import NETWORKS, StagedNet
from thonecls.images.trees import Rules, binary_labels, check_settings, is_count
from thonecls.method.config import TrainConfig
from thonecls.methods.image_training import fit_items, item_settings

Kinds = tuple[NDArray[np.int64], NDArray[np.int64]]  # positive and unlabeled samples, by number
FEWEST = 10  # of either kind of samples: of fewer none is spared to stop by
EXACT = (np.float64, np.float32, np.uint8)  # of features that are taken as they are


def _number(value: object) -> bool:
    return isinstance(value, float | int | np.floating | np.integer) and value is not True


RULES: Rules = {
    "loss": ("the name of a method", lambda value: isinstance(value, str)),
    "prior": (
        "the share of positives among the unlabeled, in (0, 1), or None",
        lambda value: value is None or (_number(value) and 0 < value < 1),
    ),
    "order": ("a whole number from 1, or None", lambda value: value is None or is_count(value)),
    "epochs": ("a whole number from 1", is_count),
    "batches": ("a whole number from 1", is_count),
    "batch_size": ("a whole number from 1", is_count),
    "rate": ("a number above 0", lambda value: _number(value) and value > 0),
    "early_stopping": ("True or False", lambda value: isinstance(value, bool | np.bool_)),
    "validation_fraction": (
        "a number in (0, 1)",
        lambda value: _number(value) and 0 < value < 1,
    ),
    "n_iter_no_change": ("a whole number from 1", is_count),
    "network": (
        f"one of {', '.join(NETWORKS)}, or a function from a sample's shape to a network",
        lambda value: callable(value) or (isinstance(value, str) and value in NETWORKS),
    ),
}


class PUClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # no types
    """A network from positive and unlabeled samples, of a table or of images.

    loss: one of `thonecls.methods.image_training.TRAININGS`, of which "taylor" and "t-honecls"
    need no prior; network: "table", "cifar" or "stl", or a function from a sample's shape to a
    `StagedNet`; prior: the share of positives among the unlabeled, for the losses that need it;
    order: of the Taylor expansion, by default the loss's own; epochs, batches (steps of an epoch),
    batch_size (items of either kind in a step) and rate (of Adam) as usual; device: "auto", "cpu",
    "cuda" or "mps".

    early_stopping: hold out `validation_fraction` of either kind of samples, stop when the loss on
    them has not fallen for `n_iter_no_change` epochs, and take the network of the epoch where it
    was least; with fewer than 10 samples of a kind nothing is held out. vPU holds out its own tenth
    and runs all epochs.

    Samples (n, d) are standardised by the mean and deviation of those in `fit`; images of uint8,
    (n, C, H, W), are scaled to -1..1; other arrays of more axes are taken as they are. A network
    of your own must not draw at random (dropout) or keep running statistics (batch norm).

    Learned: classes_, model_, n_features_in_.

    >>> rng = np.random.default_rng(0)
    >>> x = np.concatenate([rng.normal(2, 1, (100, 2)), rng.normal(-2, 1, (100, 2))])
    >>> y = np.arange(200) < 30  # of a hundred positives thirty are labelled
    >>> classifier = PUClassifier(epochs=2, random_state=0).fit(x, y)
    >>> bool(classifier.predict(x)[:100].mean() > 0.7)
    True
    """

    def __init__(
        self,
        loss: str = "taylor",
        *,
        network: str | Callable[[tuple[int, ...]], StagedNet] = "table",
        prior: float | None = None,
        order: int | None = None,
        epochs: int = 20,
        batches: int = 30,
        batch_size: int = 500,
        rate: float = 1e-3,
        early_stopping: bool = True,
        validation_fraction: float = 0.2,
        n_iter_no_change: int = 5,
        device: str = "auto",
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.loss = loss
        self.network = network
        self.prior = prior
        self.order = order
        self.epochs = epochs
        self.batches = batches
        self.batch_size = batch_size
        self.rate = rate
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.device = device
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.input_tags.three_d_array = True
        return tags

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:  # noqa: N803
        """Learn from samples (n, ...) and labels (n,): the greater of two values is "positive".

        That is 1 of {1, 0} or {1, -1}, and True; the rest is unlabeled.
        """
        config = self._config()
        x, labels = validate_data(self, X, y, dtype=EXACT, allow_nd=True)
        self.classes_, positive = binary_labels(labels)
        self._shape_, self._bytes_ = x.shape[1:], x.ndim > 2 and x.dtype == np.uint8
        if x.ndim == 2:
            with np.errstate(over="ignore"):
                self._mean_, deviation = x.mean(0, dtype=np.float64), x.std(0, dtype=np.float64)
            if not np.isfinite(deviation).all():
                raise ValueError("features must not be so large that their squares are infinite")
            self._deviation_ = np.where(deviation > 0, deviation, 1.0)
        items = self._ready(x)
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        kinds = np.flatnonzero(positive), np.flatnonzero(~positive)
        held_out = None
        if self.early_stopping and self.loss != "vpu" and min(map(len, kinds)) >= FEWEST:
            kinds, held = self._hold_out(kinds, np.random.default_rng(seed))
            held_out = Rows(items, held[0]), Rows(items, held[1])
            config = replace(config, patience=self.n_iter_no_change)
        self.model_: ItemModel = fit_items(
            self.loss,
            Rows(items, kinds[0]),
            Rows(items, kinds[1]),
            self._make,
            config=config,
            held_out=held_out,
            generator=torch.Generator().manual_seed(seed),
            sizes=(self.batch_size, self.batch_size),
        )
        return self

    def predict_proba(self, X: ArrayLike) -> NDArray[np.float64]:  # noqa: N803
        """Probability of unlabeled-like and of positive: (n, 2)."""
        check_is_fitted(self)
        x = validate_data(self, X, reset=False, dtype=EXACT, allow_nd=True)
        positive = self.model_.score(self._ready(x)).astype(np.float64)
        return np.stack([1 - positive, positive], axis=1)

    def decision_function(self, X: ArrayLike) -> NDArray[np.float64]:  # noqa: N803
        """Twice the probability of positive less one, from -1 to 1: (n,)."""
        return np.asarray(2 * self.predict_proba(X)[:, 1] - 1)

    def predict(self, X: ArrayLike) -> NDArray[Any]:  # noqa: N803
        """The likelier class, in the labels of `fit`: (n,). A tie is not positive."""
        positive = self.predict_proba(X)[:, 1] > 0.5
        return np.asarray(self.classes_[positive.astype(np.intp)])

    def _config(self) -> TrainConfig:
        """The settings, checked; a warm-up takes its published share of the epochs."""
        check_settings(self, RULES)
        published = item_settings(self.loss)
        return item_settings(
            self.loss,
            prior=self.prior,
            **({} if self.order is None else {"order": self.order}),
            epochs=self.epochs,
            batches=self.batches,
            rate=self.rate,
            device=self.device,
            warmup=round(published.warmup * self.epochs / published.epochs),
        )

    def _hold_out(self, kinds: Kinds, rng: np.random.Generator) -> tuple[Kinds, Kinds]:
        """Positive and unlabeled samples to learn from, and those by which to stop."""
        parts = []
        for places in kinds:
            order = rng.permutation(places)
            count = min(max(1, round(self.validation_fraction * len(order))), len(order) - 2)
            parts.append((np.sort(order[count:]), np.sort(order[:count])))
        (positive, held_positive), (unlabeled, held_unlabeled) = parts
        return (positive, unlabeled), (held_positive, held_unlabeled)

    def _make(self) -> StagedNet:
        if callable(self.network):
            net = self.network(self._shape_)
            if not isinstance(net, StagedNet):
                raise ConfigError(
                    f"'network' must make a thonecls.images.networks.StagedNet. Got a "
                    f"{type(net).__name__} instead: put its layers into one"
                )
            return net
        return NETWORKS[self.network](self._shape_)

    def _ready(self, x: NDArray[Any]) -> NDArray[Any]:
        """Samples as the network takes them."""
        if x.shape[1:] != self._shape_:
            raise ValueError(f"samples of {self._shape_} were learnt. Got {x.shape[1:]} instead")
        if x.ndim > 2:
            if self._bytes_ != (x.dtype == np.uint8):
                kinds = ("bytes", "other numbers") if self._bytes_ else ("other numbers", "bytes")
                raise ValueError(
                    f"images of {kinds[0]} were learnt. Got {kinds[1]} ({x.dtype}) instead"
                )
            return x if self._bytes_ else x.astype(np.float32, copy=False)
        # In float64, where a small difference of large numbers, such as times, is not lost.
        return np.asarray((x - self._mean_) / self._deviation_, dtype=np.float32)
