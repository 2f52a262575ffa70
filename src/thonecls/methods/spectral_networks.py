"""The PU losses on single spectra: a small network that learns in seconds."""

from __future__ import annotations

from typing import Any

import numpy as np

from thonecls.images.steps import PLAIN
from thonecls.methods.classifier import PUClassifier
from thonecls.methods.image_training import TRAININGS, Training
from thonecls.methods.spectral import Learnt, Samples

# Those of `PUClassifier`, but half as many spectra in a step: none takes more than ten seconds.
SETTINGS = {"epochs": 20, "batches": 30, "batch_size": 250}


def fit_network(
    loss: str, data: Samples, seed: int = 0, *, prior: float | None = None, **change: Any
) -> Learnt:
    """Train a network of three hidden layers on samples by one of `TRAININGS`.

    A method whose steps are more than a loss, such as P3MIX or NcPU, runs all epochs, those with
    phases half of them in each: the loss on held-out samples, which stops the others, would stop
    them before their own part begins. prior: the share of the class among the unlabeled, for the
    losses that need it; change: other settings of `PUClassifier`.
    """
    settings = dict(SETTINGS)
    training = TRAININGS.get(loss, Training())  # an unknown one is refused by the classifier
    if training.phases is not None:
        settings["epochs"] = max(1, settings["epochs"] // 2)
    plain = training.procedure is PLAIN and training.phases is None
    options = {**settings, "early_stopping": plain, **change}
    classifier = PUClassifier(loss, prior=prior, device="cpu", random_state=seed, **options)
    x = np.concatenate([data.positive, data.unlabeled])
    classifier.fit(x, np.arange(len(x)) < len(data.positive))
    return Learnt(lambda z: np.asarray(classifier.predict_proba(z)[:, 1]))
