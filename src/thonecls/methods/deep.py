"""Methods on FreeOCNet: settings of the one training loop, and the two that need more than that."""

from __future__ import annotations

import itertools
import time
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import ArrayLike

from thonecls.checkpoint import EVERY
from thonecls.config import TrainConfig
from thonecls.errors import ConfigError
from thonecls.loop import Figures, Progress, sgd, training_facts
from thonecls.losses import pan_coupling, pan_value, pan_value_reference, variational
from thonecls.model import Model
from thonecls.net import FreeOCNet
from thonecls.scene import Source, read_all
from thonecls.splits import Labels, check_positives, draw_labels, positive_mask
from thonecls.train import OnEpoch, OnStep, fit, prepare

# The baselines share the paper's schedule; they are single networks, without clipping.
ALONE: dict[str, Any] = {"beta": 0.0, "ema": False, "clip": 1e9}
SETTINGS: dict[str, dict[str, Any]] = {
    "t-honecls": {},
    "taylor": {"beta": 0.0, "ema": False},
    "variational": {"loss": "variational", **ALONE},
    "vpu": {"loss": "vpu", "beta": 0.0, "ema": False},  # clipped: its MixUp term has no bound
    "nnpu": {"loss": "nnpu", **ALONE},
    "upu": {"loss": "upu", **ALONE},
    "abs-negative": {"loss": "abs-negative", **ALONE},
    "oc": {"loss": "oc", "warmup": 20, "warmup_loss": "oc-warmup", **ALONE},
    "bce": {"loss": "bce", **ALONE},
    "mse": {"loss": "mse", **ALONE},
    "gce": {"loss": "gce", **ALONE},
    "sce": {"loss": "sce", **ALONE},
    "tce": {"loss": "tce", "order": 6, **ALONE},
    "dist-pu": {"loss": "dist-pu", **ALONE},
    "pan": {"loss": "bce", **ALONE},
    "pan-reference": {"loss": "bce", **ALONE},
    "pan-as-run": {"loss": "bce", **ALONE},
}
GAMES = {"pan": pan_value, "pan-reference": pan_value_reference}
BOUND = 0.01  # eps in the logarithms of PAN's coupling, which has no bound without it
HELD_OUT = 0.1  # share of both kinds of pixels by which vPU selects its epoch


def settings(method: str, base: TrainConfig, **change: Any) -> TrainConfig:
    """The settings of a method, on top of a preset; `change` overrides both."""
    if method not in SETTINGS:
        raise ConfigError(f"no network is trained by {method!r}: take one of {', '.join(SETTINGS)}")
    if method == "pan-as-run":
        # Its two networks take turns by epochs, and the one that is scored learns in every second.
        half = max(1, base.epochs // 2)
        base = replace(base, epochs=half, rate_decay=base.rate_decay**2)
    return replace(base, **{**SETTINGS[method], **change})


def train(
    method: str,
    scene: Source,
    labels: Labels | ArrayLike,
    *,
    config: TrainConfig,
    generator: torch.Generator,
    on_epoch: OnEpoch | None = None,
    on_step: OnStep | None = None,
    checkpoint: Path | None = None,
    checkpoint_every: float = EVERY,
    resume: bool = False,
) -> Model:
    """Train by one of `SETTINGS`; config: as `settings` gives it; the rest as for `fit`.

    vPU and PAN keep no checkpoint: they start again.
    """
    if method == "vpu":
        return _train_vpu(scene, labels, config, generator, on_epoch, on_step)
    if method in GAMES:
        return _play_pan(method, scene, labels, config, generator, on_epoch, on_step)
    return fit(
        scene,
        labels,
        config=config,
        generator=generator,
        on_epoch=on_epoch,
        on_step=on_step,
        checkpoint=checkpoint,
        checkpoint_every=checkpoint_every,
        resume=resume,
    )


def _train_vpu(
    scene: Source,
    labels: Labels | ArrayLike,
    config: TrainConfig,
    generator: torch.Generator,
    on_epoch: OnEpoch | None,
    on_step: OnStep | None,
) -> Model:
    """vPU: of all epochs that with the least variational loss on held-out pixels.

    The result's probabilities are divided by their largest among the unlabeled pixels: the
    variational loss leaves their scale open.
    """
    rng = np.random.default_rng(int(torch.randint(2**62, (), generator=generator)))
    if not isinstance(labels, Labels):
        mask = positive_mask(labels, scene.shape)
        labels = draw_labels(mask, read_all(scene).valid, config.unlabeled, rng)
    check_positives(labels.positive, scene.shape)
    kept, held = _hold_out(labels, rng)
    best: tuple[float, Model] | None = None

    def select(progress: Progress[Model]) -> None:
        nonlocal best
        model = progress.snapshot()
        probability = torch.from_numpy(model.score(scene, device=config.device)).flatten()
        logits = torch.logit(probability.double().clamp(1e-30, 1 - 1e-15))
        loss = variational(
            logits[torch.from_numpy(held.positive)], logits[torch.from_numpy(held.unlabeled)]
        ).item()
        if best is None or loss < best[0]:
            largest = float(probability[torch.from_numpy(kept.unlabeled)].max())
            best = loss, replace(model, ceiling=max(largest, 1e-30))
        if on_epoch is not None:
            on_epoch(replace(progress, snapshot=lambda: best[1] if best else model))

    fit(scene, kept, config=config, generator=generator, on_epoch=select, on_step=on_step)
    assert best is not None
    return best[1]


def _hold_out(labels: Labels, rng: np.random.Generator) -> tuple[Labels, Labels]:
    """A tenth of either kind set apart, at least one pixel."""
    parts = []
    for pixels in (labels.positive, labels.unlabeled):
        count = max(1, round(HELD_OUT * len(pixels)))
        held = rng.choice(np.sort(pixels), size=count, replace=False)
        parts.append((np.setdiff1d(pixels, held), np.sort(held)))
    (p_kept, p_held), (u_kept, u_held) = parts
    return Labels(p_kept, u_kept), Labels(p_held, u_held)


class Player(NamedTuple):
    """One of PAN's two networks."""

    net: FreeOCNet
    optimizer: torch.optim.Optimizer


def _play_pan(
    method: str,
    scene: Source,
    labels: Labels | ArrayLike,
    config: TrainConfig,
    generator: torch.Generator,
    on_epoch: OnEpoch | None,
    on_step: OnStep | None,
) -> Model:
    """PAN: a discriminator D of positive from unlabeled, and the classifier C that it teaches.

    They take turns by epochs; an epoch of D raises the value of the game, one of C lowers it.
    C sees of it only the coupling: its weight would be a factor on the learning rate, and is left
    out for C, as Adam would leave it out.
    """
    ground = prepare(scene, labels, config, generator)
    value = GAMES[method]
    classifier, discriminator = (
        Player(net, sgd(net, config)) for net in (ground.new_net(generator) for _ in range(2))
    )
    history: list[float] = []
    seconds = 0.0

    def snapshot() -> Model:
        facts = {
            **training_facts(config, ground),
            "seconds": round(seconds, 3),
            "history": {"loss": history},
            "finished": True,
        }
        return ground.model(classifier.net, facts)

    for epoch in range(config.epochs):
        mover, other = (
            (discriminator, classifier) if epoch % 2 == 0 else (classifier, discriminator)
        )
        batches = ground.batches(config.batches, generator)
        total = 0.0
        for step, (index, batch) in enumerate(batches, 1):
            began = time.perf_counter()
            cube, valid = ground.inputs(index)
            pixels, counts = torch.cat(batch), [len(part) for part in batch]
            moving = mover.net.logits_at(cube, pixels, valid).split(counts)
            with torch.no_grad():
                still = other.net.logits_at(cube, pixels, valid).split(counts)
            loss = (
                -value(moving[0], moving[1], still[1], eps=BOUND)
                if mover is discriminator
                else pan_coupling(still[1], moving[1], BOUND)
            )
            for group in mover.optimizer.param_groups:
                group["lr"] = config.rate * config.rate_decay**epoch
            mover.optimizer.zero_grad()
            loss.backward()
            mover.optimizer.step()
            total += loss.item()
            seconds += time.perf_counter() - began
            figures = Figures(total / step, *itertools.repeat(0.0, len(Figures._fields) - 1))
            progress = Progress(
                epoch + 1, config.epochs, step, len(batches), figures, ground.pixels, snapshot
            )
            if on_step is not None and on_step(progress):
                return snapshot()
        history.append(total / len(batches))
        if on_epoch is not None:
            on_epoch(progress)
    return snapshot()
