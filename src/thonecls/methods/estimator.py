"""`THOneCls`: the method as a scikit-learn estimator for scenes."""

from __future__ import annotations

import os
from dataclasses import fields
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator

from thonecls.errors import SceneError, ThoneclsError
from thonecls.io.arrays import band_axis
from thonecls.method.config import FAST, TrainConfig
from thonecls.method.fit import OnEpoch, OnStep, fit
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
    to tell from the labels' shape, or, of a model that was loaded, from its number of bands;
    **config: any setting of `TrainConfig`, by default those of the `FAST` preset.

    Learned: model_, bands_.

    >>> from thonecls.datasets import synthetic
    >>> data = synthetic(height=16, width=16, bands=4)
    >>> mapper = THOneCls(epochs=1, width=0.25, unlabeled=50)
    >>> mapper.fit(data.scene.cube, data.truth == 1).predict(data.scene.cube).shape
    (16, 16)
    """

    model_: Model
    bands_: Literal["first", "last"] | None

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

    def fit(
        self,
        cube: Scene | NDArray[Any],
        positives: ArrayLike,
        *,
        on_epoch: OnEpoch | None = None,
        on_step: OnStep | None = None,
    ) -> THOneCls:
        """Learn from one scene.

        cube: a `Scene`, or an array of bands × rows × columns (or rows × columns × bands);
        positives: an (H, W) mask as bool, 1/0 or 1/-1, or (n, 2) row/column pairs. `on_epoch` and
        `on_step` are told of the progress; when `on_step` returns True, training ends there.
        """
        config = TrainConfig(**{name: getattr(self, name) for name in SETTINGS})
        labels = np.asarray(positives)
        axis = self._axis(cube, labels=labels)
        scene = as_scene(cube, bands=axis)
        mask = positive_mask(labels, scene.shape)
        generator = torch.Generator().manual_seed(self.seed)
        self.model_ = fit(
            scene, mask, config=config, generator=generator, on_epoch=on_epoch, on_step=on_step
        )
        self.bands_ = axis
        return self

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to a .safetensors file, which holds no code; `thonecls map` reads it."""
        self._fitted().save(Path(path))

    @classmethod
    def load(
        cls, path: str | os.PathLike[str], *, bands: Literal["auto", "first", "last"] = "auto"
    ) -> THOneCls:
        """The estimator of a network that `save`, `Model.save` or `thonecls train` wrote.

        It has the settings of its training; bands: as of the class, for the cubes to be mapped.
        A density ratio is read by `load_model`.
        """
        model = Model.load(Path(path))
        known = {k: v for k, v in model.training.get("config", {}).items() if k in SETTINGS}
        loaded = cls(bands=bands, **known)
        loaded.model_, loaded.bands_ = model, None if bands == "auto" else bands
        return loaded

    def _fitted(self) -> Model:
        if not hasattr(self, "model_"):
            raise NotFittedError("this THOneCls is not fitted: call fit(cube, positives) first")
        return self.model_

    def predict_proba(self, cube: Scene | NDArray[Any]) -> NDArray[np.float32]:
        """Probability of the class at every pixel: (H, W) float32."""
        model = self._fitted()
        axis = self.bands_ or self._axis(cube, bands=model.bands)
        return model.score(as_scene(cube, bands=axis), device=self.device)

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

    def _axis(
        self,
        cube: Scene | NDArray[Any],
        *,
        labels: NDArray[Any] | None = None,
        bands: int | None = None,
    ) -> Literal["first", "last"]:
        """Which axis holds the bands; where labels or the number of bands leave a doubt, an error.

        What fits neither way is taken as it is: what is wrong with it is said later.
        """
        if isinstance(cube, Scene):
            return "first"
        if self.bands != "auto":
            return self.bands
        shape = np.shape(cube)
        axis = band_axis(shape, labels=labels, bands=bands) if len(shape) == 3 else "first"
        if axis is not None:
            return axis
        if labels is None:
            fits = shape[0] == bands
        elif labels.shape[1:] == (2,) and labels.shape != shape[1:]:
            fits = bool((labels.max(axis=0, initial=0) < shape[1:]).all())
        else:
            fits = labels.shape == shape[1:]
        if fits:  # both ways
            known = f"{bands} bands" if labels is None else f"labels of {labels.shape}"
            raise SceneError(
                f"cannot tell which axis of a cube of {shape} holds the bands from {known}: say "
                "THOneCls(bands='first') or THOneCls(bands='last')"
            )
        return "first"
