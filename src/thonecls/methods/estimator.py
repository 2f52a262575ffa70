"""`THOneCls`: the method as a scikit-learn estimator for scenes."""

from __future__ import annotations

import warnings
from dataclasses import fields
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator

from thonecls.errors import ThoneclsError
from thonecls.io.arrays import band_axis
from thonecls.method.config import FAST, TrainConfig
from thonecls.method.fit import fit
from thonecls.method.model import Model
from thonecls.metrics import evaluate
from thonecls.scene import Scene, as_scene
from thonecls.splits import positive_mask

SETTINGS = tuple(f.name for f in fields(TrainConfig))


class NotFittedError(ThoneclsError, AttributeError):
    """Something was asked of an estimator before `fit`."""


class THOneCls(BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Map one class of a scene from positive pixels alone.

    seed: of everything random; bands: "first" for (C, H, W) cubes, "last" for (H, W, C), "auto"
    to tell from the labels' shape; **config: any setting of `TrainConfig`, by default those of
    the `FAST` preset.

    >>> from thonecls.datasets import synthetic
    >>> data = synthetic(height=16, width=16, bands=4)
    >>> mapper = THOneCls(epochs=1, width=0.25, unlabeled=50)
    >>> mapper.fit(data.scene.cube, data.truth == 1).predict(data.scene.cube).shape
    (16, 16)
    """

    model_: Model

    def __init__(
        self, *, seed: int = 0, bands: Literal["auto", "first", "last"] = "auto", **config: Any
    ) -> None:
        unknown = set(config) - set(SETTINGS)
        if unknown:
            raise TypeError(f"unknown settings {sorted(unknown)}; known: {', '.join(SETTINGS)}")
        self.seed = seed
        self.bands = bands
        for name in SETTINGS:
            setattr(self, name, config.get(name, getattr(FAST, name)))

    @classmethod
    def _get_param_names(cls) -> list[str]:
        return sorted({"seed", "bands", *SETTINGS})

    def fit(self, cube: Scene | NDArray[Any], positives: ArrayLike) -> THOneCls:
        """Learn from one scene.

        cube: a `Scene`, or an array of bands × rows × columns (or rows × columns × bands);
        positives: an (H, W) mask as bool, 1/0 or 1/-1, or (n, 2) row/column pairs.
        """
        config = TrainConfig(**{name: getattr(self, name) for name in SETTINGS})
        labels = np.asarray(positives)
        self.bands_ = self._axis(cube, labels)
        scene = as_scene(cube, bands=self.bands_)
        mask = positive_mask(labels, scene.shape)
        generator = torch.Generator().manual_seed(self.seed)
        self.model_ = fit(scene, mask, config=config, generator=generator)
        return self

    def predict_proba(self, cube: Scene | NDArray[Any]) -> NDArray[np.float32]:
        """Probability of the class at every pixel: (H, W) float32."""
        if not hasattr(self, "model_"):
            raise NotFittedError("this THOneCls is not fitted: call fit(cube, positives) first")
        return self.model_.score(as_scene(cube, bands=self.bands_), device=self.device)

    def predict(
        self, cube: Scene | NDArray[Any], threshold: float | None = None
    ) -> NDArray[np.bool_]:
        """Where the probability is strictly above the threshold, the model's own: (H, W) bool."""
        probability = self.predict_proba(cube)
        return np.asarray(probability > (self.model_.threshold if threshold is None else threshold))

    def score(
        self,
        cube: Scene | NDArray[Any],
        truth: ArrayLike,
        test: NDArray[np.bool_] | None = None,
    ) -> float:
        """F1 against the truth, from 0 to 1.

        truth: (H, W) mask of the class; test: (H, W) mask of the pixels to count, which should
        leave out unlabelled pixels and training positives.
        """
        probability = self.predict_proba(cube)
        of_class = positive_mask(truth, probability.shape)
        return evaluate(probability, of_class, test, threshold=self.model_.threshold).f1 / 100

    def _axis(self, cube: Scene | NDArray[Any], labels: NDArray[Any]) -> Literal["first", "last"]:
        if isinstance(cube, Scene):
            return "first"
        if self.bands != "auto":
            return self.bands
        shape = np.shape(cube)
        axis = band_axis(shape, labels=labels) if len(shape) == 3 else "first"
        fits = labels.shape in (shape[1:], shape[:2]) or labels.shape[1:] == (2,)
        if axis is None and fits:
            warnings.warn(
                f"took the first axis of {shape} as the bands; say bands='first' or bands='last'",
                stacklevel=3,
            )
        return axis or "first"
