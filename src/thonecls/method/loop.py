"""The training loop: Algorithm 1 of the paper, for scenes, and for images and tables alike."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import nn

from thonecls.errors import TrainingError
from thonecls.method.checkpoint import Checkpointer, State
from thonecls.method.config import TrainConfig
from thonecls.method.procedure import B, M, Procedure, TrainingData
from thonecls.method.progress import (
    Control,
    EpochMetrics,
    Progress,
    fingerprint,
    history_of,
    training_facts,
)
from thonecls.method.store import part
from thonecls.method.teacher import DECAYS, ema_update_

SETTLED_OVER = 3  # epochs over which the fall is averaged
BEST = "best"  # in the memory: the least validation loss, when, and the network's weights
LEARNING = 0.8  # of its largest value: below, the mean probability has clearly fallen


SHARE = EpochMetrics._fields.index("share")


def run(
    data: TrainingData[B, M],
    *,
    config: TrainConfig,
    generator: torch.Generator,
    control: Control[M] | None = None,
    procedure: Procedure[B] | None = None,
    start: nn.Module | None = None,
) -> M:
    """Train on data and return the teacher (without one, the student) as its kind of model.

    start: a network whose weights the student begins with. The same generator state gives the
    same bits on the same machine.
    """
    procedure, control = procedure or Procedure(), control or Control()
    state = _start(data, config, procedure, generator, start)
    known = fingerprint(config, data, procedure, state) if control.checkpoint is not None else ""
    checkpointer = Checkpointer(control.checkpoint, known, control.checkpoint_every)
    if control.resume:
        checkpointer.restore_(state)
    generator.set_state(state.shuffle)
    stopped = False

    def snapshot() -> M:
        facts = {
            **training_facts(config, data),
            "seconds": round(state.seconds, 3),
            "history": history_of(state),
            "finished": _finished(state, config),
        }
        net = state.teacher if config.ema else state.student
        if BEST in state.memory:
            net = copy.deepcopy(net)
            net.load_state_dict(part(state.memory, f"{BEST}."))
            facts["selected_epoch"] = int(state.memory[BEST][1])
        return data.model(net, facts)

    while not (stopped or _finished(state, config)):
        batches = data.batches(config.batches, generator)
        if procedure.on_epoch_start is not None and state.step == 0:
            procedure.on_epoch_start(state, data, config)
        for batch in batches[state.step :]:
            began = time.perf_counter()
            figures = _step_(state, data, batch, config, procedure)
            state.sums = [a + b for a, b in zip(state.sums, figures, strict=True)]
            state.step += 1
            state.seconds += time.perf_counter() - began
            checkpointer.keep(state)
            if control.on_step is not None:
                stopped = bool(
                    control.on_step(_progress(state, config, len(batches), data.pixels, snapshot))
                )
            if stopped and state.step < len(batches):
                break
        else:
            progress = _progress(state, config, len(batches), data.pixels, snapshot)
            state.history.append(list(progress.metrics))
            state.epoch, state.step, state.sums = state.epoch + 1, 0, _no_sums()
            state.shuffle = generator.get_state()
            if procedure.validation_loss is not None:
                net = state.teacher if config.ema else state.student
                _keep_best_(state, net, procedure.validation_loss(net, data))
            if control.on_epoch is not None:
                control.on_epoch(progress)
    checkpointer.keep(state, now=True)
    return snapshot()


def _step_(
    state: State, data: TrainingData[B, Any], batch: B, config: TrainConfig, procedure: Procedure[B]
) -> list[float]:
    """One step: loss, gradient, clipping, the optimiser, and the teacher's average."""
    for group in state.optimizer.param_groups:
        group["lr"] = procedure.rate(config, state.epoch)
    kind = next(state.student.parameters()).device.type
    with torch.autocast(kind, torch.bfloat16, enabled=config.precision == "bfloat16"):
        step_losses = procedure.step_losses(state, data, batch, config)
    state.optimizer.zero_grad()
    step_losses.loss.backward()
    norm = torch.nn.utils.clip_grad_norm_(state.student.parameters(), config.clip)
    state.optimizer.step()
    if config.ema:
        # By epoch, not by step, as in the authors' runs.
        ema_update_(state.teacher, state.student, DECAYS[config.decay](state.epoch, config.alpha))
    figures: list[float] = torch.stack([*step_losses, norm]).tolist()
    if not np.isfinite(figures).all():
        raise TrainingError(
            f"the loss is no longer finite in epoch {state.epoch + 1}: lower the learning rate "
            f"(now {config.rate:g}), and check the input for extreme values"
        )
    return figures


def _keep_best_(state: State, net: nn.Module, loss: float) -> None:
    """Remember the network, if none had a smaller loss, and the epoch it comes from."""
    if BEST in state.memory and loss >= state.memory[BEST][0]:
        return
    state.memory[BEST] = torch.tensor([loss, state.epoch], dtype=torch.float64)
    for name, value in net.state_dict().items():
        state.memory[f"{BEST}.{name}"] = value.clone()


def _finished(state: State, config: TrainConfig) -> bool:
    """Whether all epochs are done, the validation loss is stale, or the map has settled.

    A warm-up does not count.
    """
    if state.epoch >= config.epochs:
        return True
    if config.patience and BEST in state.memory:
        return state.epoch - int(state.memory[BEST][1]) >= config.patience
    share = [figures[SHARE] for figures in state.history]
    return state.epoch > config.warmup + SETTLED_OVER and has_settled(share, config.settle)


def has_settled(share: list[float], settle: float) -> bool:
    """Whether the mean probability of the unlabeled pixels, by epoch, has stopped falling.

    While the class is being learnt, it falls fast. Once it stands, the network only goes on to
    memorise unlabeled pixels of the class as negatives. Before it has fallen clearly, learning
    has not begun.

    >>> has_settled([0.5, 0.3, 0.2, 0.1], settle=0.02)
    False
    >>> has_settled([0.5, 0.11, 0.1, 0.1, 0.1, 0.1], settle=0.02)
    True
    """
    if settle == 0 or len(share) <= SETTLED_OVER or share[-1] > LEARNING * max(share):
        return False
    return share[-1] > share[-1 - SETTLED_OVER] * (1 - settle) ** SETTLED_OVER


def _no_sums() -> list[float]:
    """Of an epoch's metrics, before its first step."""
    return [0.0] * len(EpochMetrics._fields)


def _start(
    data: TrainingData[B, Any],
    config: TrainConfig,
    procedure: Procedure[B],
    generator: torch.Generator,
    start: nn.Module | None,
) -> State:
    # Two initialisations: the teacher becomes a copy of the student in the first epoch.
    student, teacher = (data.new_net(generator) for _ in range(2))
    if start is not None:
        student.load_state_dict(start.state_dict())
    return State(
        student, teacher, procedure.optimizer(student, config), generator.get_state(), _no_sums()
    )


def _progress(
    state: State,
    config: TrainConfig,
    steps: int,
    pixels: int,
    snapshot: Callable[[], M],
) -> Progress[M]:
    figures = EpochMetrics(*(total / state.step for total in state.sums))
    return Progress(state.epoch + 1, config.epochs, state.step, steps, figures, pixels, snapshot)
