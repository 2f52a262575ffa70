"""The training loop: Algorithm 1 of the paper, for scenes, and for images and tables alike.

What is trained on is a `TrainingData`; where a method departs from Algorithm 1, its `Procedure`
says how.
"""

from __future__ import annotations

import copy
import hashlib
import inspect
import json
import math
import platform
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from thonecls.errors import ConfigError, TrainingError
from thonecls.method.checkpoint import Checkpointer, State
from thonecls.method.config import CHECKPOINT_SECONDS, TrainConfig
from thonecls.method.losses import SHARED, find_loss, positive_loss
from thonecls.method.store import part
from thonecls.method.teacher import CONSISTENCIES, DECAYS, ema_update_
from thonecls.version import __version__, commit

SETTLED_OVER = 3  # epochs over which the fall is averaged
BEST = (
    "best"  # in a procedure's memory: the least validation loss and when, and the network's weights
)
LEARNING = 0.8  # of its largest value: below, the mean probability has clearly fallen

B = TypeVar("B")
M_co = TypeVar("M_co", covariant=True)
Logits = tuple[Tensor, Tensor]  # of the positive and of the unlabeled items of a batch


class TrainingData(Protocol[B, M_co]):
    """What networks are trained on: items with labels, and what a step sees of them.

    pixels: items that a step sees; identity: bytes that tell these data from others.
    """

    @property
    def pixels(self) -> int: ...

    @property
    def identity(self) -> list[bytes]: ...

    def batches(self, count: int, generator: torch.Generator) -> list[B]:
        """One epoch."""

    def new_net(self, generator: torch.Generator) -> nn.Module:
        """A network whose weights depend on `generator` alone."""

    def logits(self, net: nn.Module, batch: B) -> Logits:
        """What the network says of a batch."""

    def facts(self) -> dict[str, Any]:
        """What a model remembers of where it was trained, ready for JSON."""

    def model(self, net: nn.Module, facts: dict[str, Any]) -> M_co:
        """The network as it is now, ready for use."""


class StepLosses(NamedTuple):
    """The parts of one step's loss, as scalars; only `loss` carries a gradient."""

    loss: Tensor
    positive: Tensor
    unlabeled: Tensor
    consistency: Tensor
    share: Tensor


class EpochMetrics(NamedTuple):
    """Means over an epoch's steps.

    share: the mean probability of the unlabeled items, by the teacher where it is evaluated;
    gradient_norm: before clipping.
    """

    loss: float
    positive: float
    unlabeled: float
    consistency: float
    share: float
    gradient_norm: float


SHARE = EpochMetrics._fields.index("share")


@dataclass(frozen=True)
class Progress(Generic[M_co]):
    """Where training stands: epoch and step count from 1; metrics are means since the epoch began.

    Every step sees so many `pixels`, all of a scene within the budget; snapshot() gives the model
    as it is now.
    """

    epoch: int
    epochs: int
    step: int
    steps: int
    metrics: EpochMetrics
    pixels: int
    snapshot: Callable[[], M_co]


def new_optimizer(net: nn.Module, config: TrainConfig) -> torch.optim.Optimizer:
    """The optimiser of one network: SGD as in the paper's scenes, or AdamW."""
    if config.optimizer == "adam":
        # Fused, where networks are small and calls would cost more than what they do.
        fused = all(p.device.type == "cpu" for p in net.parameters()) or None
        return torch.optim.AdamW(
            net.parameters(), lr=config.rate, weight_decay=config.weight_decay, fused=fused
        )
    return torch.optim.SGD(
        net.parameters(),
        lr=config.rate,
        momentum=config.momentum,
        weight_decay=config.weight_decay,
    )


def scheduled_rate(config: TrainConfig, epoch: int) -> float:
    """The learning rate of the 0-based epoch.

    >>> config = TrainConfig(epochs=4, rate=1.0, schedule="cosine")
    >>> [round(scheduled_rate(config, epoch), 3) for epoch in range(4)]
    [1.0, 0.854, 0.5, 0.146]
    """
    if config.schedule == "cosine":
        return config.rate * (1 + math.cos(math.pi * epoch / config.epochs)) / 2
    return config.rate * config.rate_decay**epoch


def pu_step_losses(
    state: State, data: TrainingData[B, Any], batch: B, config: TrainConfig
) -> StepLosses:
    """The loss of a step by the settings alone."""
    now = replace(config, loss=config.warmup_loss) if state.epoch < config.warmup else config
    return objective(state.student, state.teacher, lambda net: data.logits(net, batch), now)


@dataclass(frozen=True)
class Procedure(Generic[B]):
    """How steps are made; the defaults are Algorithm 1.

    name: tells it from other procedures; on_epoch_start: called before every epoch; whatever it
    or `step_losses` must remember goes into `State.memory`, which checkpoints keep.
    validation_loss: taken
    after every epoch; the result is then the network of the epoch where it was least.
    """

    name: str = ""
    step_losses: Callable[[State, Any, B, TrainConfig], StepLosses] = pu_step_losses
    optimizer: Callable[[nn.Module, TrainConfig], torch.optim.Optimizer] = new_optimizer
    rate: Callable[[TrainConfig, int], float] = scheduled_rate
    on_epoch_start: Callable[[State, Any, TrainConfig], None] | None = None
    validation_loss: Callable[[nn.Module, Any], float] | None = None


def run(
    data: TrainingData[B, M_co],
    *,
    config: TrainConfig,
    generator: torch.Generator,
    procedure: Procedure[B] | None = None,
    start: nn.Module | None = None,
    on_epoch: Callable[[Progress[M_co]], None] | None = None,
    on_step: Callable[[Progress[M_co]], bool | None] | None = None,
    checkpoint: Path | None = None,
    checkpoint_every: float = CHECKPOINT_SECONDS,
    resume: bool = False,
) -> M_co:
    """Train on data and return the teacher (without one, the student) as its kind of model.

    start: a network whose weights the student begins with. The same generator state gives the
    same bits on the same machine. `on_epoch` and `on_step` report progress; when `on_step` returns
    True, training ends there with a usable model. With a `checkpoint` path the state is kept there
    every so many seconds and at the end; with `resume`, training goes on from it if it exists, to
    the same bits.
    """
    procedure = procedure or Procedure()
    state = _start(data, config, procedure, generator, start)
    known = _fingerprint(config, data, procedure, state) if checkpoint is not None else ""
    checkpointer = Checkpointer(checkpoint, known, checkpoint_every)
    if resume:
        checkpointer.restore_(state)
    generator.set_state(state.shuffle)
    stopped = False

    def snapshot() -> M_co:
        facts = {
            **training_facts(config, data),
            "seconds": round(state.seconds, 3),
            "history": _history(state),
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
            if on_step is not None:
                stopped = bool(
                    on_step(_progress(state, config, len(batches), data.pixels, snapshot))
                )
            if stopped and state.step < len(batches):
                break
        else:
            progress = _progress(state, config, len(batches), data.pixels, snapshot)
            state.history.append(list(progress.metrics))
            state.epoch, state.step, state.sums = (
                state.epoch + 1,
                0,
                [0.0] * len(EpochMetrics._fields),
            )
            state.shuffle = generator.get_state()
            if procedure.validation_loss is not None:
                net = state.teacher if config.ema else state.student
                _keep_best_(state, net, procedure.validation_loss(net, data))
            if on_epoch is not None:
                on_epoch(progress)
    checkpointer.keep(state, now=True)
    return snapshot()


def check_prior(config: TrainConfig) -> None:
    """Refuse settings whose loss needs a class prior that is not given."""
    for name in {config.loss, config.warmup_loss} if config.warmup else {config.loss}:
        if config.prior is None and "prior" in inspect.signature(find_loss(name)).parameters:
            raise ConfigError(
                f"the loss '{name}' needs the class prior, the share of the class among all "
                "pixels or items: set 'prior' (of a scene, `thonecls prior` estimates it, and "
                "'estimate_prior' sets it)",
                options=("estimate_prior",),
            )


def _step_(
    state: State, data: TrainingData[B, Any], batch: B, config: TrainConfig, procedure: Procedure[B]
) -> list[float]:
    """One step: loss, gradient, clipping, the optimiser, and the teacher's average."""
    for group in state.optimizer.param_groups:
        group["lr"] = procedure.rate(config, state.epoch)
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


def objective(
    student: nn.Module,
    teacher: nn.Module,
    logits_of: Callable[[nn.Module], Logits],
    config: TrainConfig,
) -> StepLosses:
    """The student's loss on one batch, Eq. 20: PU loss + beta * consistency.

    The teacher is not evaluated at all when beta is 0.
    """
    target = None
    if config.beta:
        with torch.no_grad():  # before the student, whose pass keeps memory for its gradient
            target = logits_of(teacher)
    positive, unlabeled = logits_of(student)
    loss = find_loss(config.loss)
    pu = loss(positive, unlabeled, **_shared(loss, config))
    of_positive = positive_loss(positive.detach())
    rest = pu.detach() - of_positive
    if target is None:
        share = torch.sigmoid(unlabeled.detach()).mean()
        return StepLosses(pu, of_positive, rest, torch.zeros_like(rest), share)
    logits = torch.cat([positive, unlabeled])
    consistency = CONSISTENCIES[config.consistency](logits, torch.cat(target))
    total = pu + config.beta * consistency
    share = torch.sigmoid(target[1]).mean()
    return StepLosses(total, of_positive, rest, consistency.detach(), share)


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


def _shared(loss: Callable[..., Tensor], config: TrainConfig) -> dict[str, Any]:
    """Those few settings of training that a loss takes by name; its own options are its own."""
    taken = inspect.signature(loss).parameters
    return {name: getattr(config, name) for name in SHARED if name in taken}


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
    sums = [0.0] * len(EpochMetrics._fields)
    return State(
        student, teacher, procedure.optimizer(student, config), generator.get_state(), sums
    )


def _progress(
    state: State,
    config: TrainConfig,
    steps: int,
    pixels: int,
    snapshot: Callable[[], M_co],
) -> Progress[M_co]:
    figures = EpochMetrics(*(total / state.step for total in state.sums))
    return Progress(state.epoch + 1, config.epochs, state.step, steps, figures, pixels, snapshot)


def _fingerprint(
    config: TrainConfig, data: TrainingData[B, Any], procedure: Procedure[B], start: State
) -> str:
    """Tells one training from another: settings, data, procedure, network and random numbers."""
    digest = hashlib.sha256(json.dumps(asdict(config)).encode())
    shapes = {name: list(value.shape) for name, value in start.student.state_dict().items()}
    digest.update(json.dumps([procedure.name, shapes]).encode())
    digest.update(start.shuffle.numpy().tobytes())
    for piece in data.identity:
        digest.update(piece)
    return digest.hexdigest()


def _history(state: State) -> dict[str, list[float]]:
    """Every figure by epoch."""
    columns = (
        zip(*state.history, strict=True) if state.history else [[]] * len(EpochMetrics._fields)
    )
    return {name: list(column) for name, column in zip(EpochMetrics._fields, columns, strict=True)}


def training_facts(config: TrainConfig, data: TrainingData[Any, Any]) -> dict[str, Any]:
    """What a model remembers of its training, ready for JSON."""
    return {
        "config": asdict(config),
        **data.facts(),
        "versions": {"thonecls": __version__, "commit": commit(), "torch": torch.__version__},
        "python": platform.python_version(),
    }
