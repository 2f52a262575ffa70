"""Costs: what training takes, beside what the networks of a method really do."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from thonecls.datasets import Dataset
from thonecls.method.config import FAST, TrainConfig
from thonecls.method.net import FreeOCNet
from thonecls.methods import METHODS
from thonecls.methods.costs import ALONE, NETWORKS, Networks, training_cost
from thonecls.splits import draw_labels

EPOCHS, BATCHES = 2, 6
# Networks that train in another way than T-HOneCls does, with other settings.
OWN_WAY = [
    name
    for name, method in METHODS.items()
    if method.learning is METHODS["bce"].learning and method.learn != METHODS["bce"].learn
]


@pytest.mark.parametrize("name", ["bce", "t-honecls", *OWN_WAY])
def test_the_networks_that_a_method_trains_and_looks_through_are_known(
    name: str,
    tiny: TrainConfig,
    field_scene: Dataset,
    few_positives: NDArray[np.bool_],
    generator: torch.Generator,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    passes: Counter[bool] = Counter()  # with and without a gradient

    def counted(net: FreeOCNet, *given: Any) -> list[torch.Tensor]:
        passes[torch.is_grad_enabled()] += 1
        return encode(net, *given)

    encode = FreeOCNet.encode
    monkeypatch.setattr(FreeOCNet, "encode", counted)
    base = replace(tiny, epochs=EPOCHS, batches=BATCHES)
    config = METHODS[name].configure(base, prior=0.2, warmup=0)
    rng = np.random.default_rng(0)
    labels = draw_labels(few_positives, field_scene.scene.valid, config.unlabeled, rng)
    METHODS[name].train(field_scene.scene, labels, config=config, generator=generator)
    steps = EPOCHS * BATCHES
    known = NETWORKS.get(name, Networks())
    assert passes[True] == known.trained * steps
    watched = steps if config.beta else known.watched * steps
    more = passes[False] - watched  # at most a look at the whole scene for each epoch
    assert 0 <= more <= known.trained * EPOCHS + 3


def test_more_networks_take_more_time() -> None:
    def cost(method: str) -> float:
        config = METHODS[method].configure(replace(FAST, settle=0.0, members=0), prior=0.2)
        return training_cost(config, 10_000, 2, method=method).seconds

    alone = cost("bce")
    assert cost("pubn") == pytest.approx((1 + 1 / ALONE) * alone)
    for method in ("ncpu", "p3mix-e", "pan", "t-honecls"):
        assert cost(method) == pytest.approx(alone / ALONE)
    assert alone < cost("dist-pu-full") < alone / ALONE
    assert cost("p3mix-c") == alone
