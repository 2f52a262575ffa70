"""Training: Algorithm 1 of the paper, from a scene and a few positive pixels to a `Model`."""

from __future__ import annotations

import hashlib
import inspect
import json
import platform
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, fields, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from thonecls.checkpoint import EVERY, Keeper, State
from thonecls.errors import ConfigError, TrainingError
from thonecls.ground import Batch, Ground
from thonecls.losses import LOSSES, positive_loss
from thonecls.model import Model, resolve_device
from thonecls.net import FreeOCNet
from thonecls.scene import Source
from thonecls.splits import Labels
from thonecls.teacher import CONSISTENCIES, DECAYS, ema_update_


def _setting(default: Any, help: str) -> Any:
    """A field whose help text the command line shows."""
    return field(default=default, metadata={"help": help})


@dataclass(frozen=True)
class TrainConfig:
    """Settings of training; the defaults are the paper's for Indian Pines."""

    epochs: int = _setting(300, "Passes over the labelled and unlabeled pixels.")
    batches: int = _setting(10, "Pseudo-batches, and so optimisation steps, in an epoch.")
    unlabeled: int = _setting(4000, "Unlabeled pixels drawn from the whole scene.")
    loss: str = _setting("taylor", f"The PU loss: {', '.join(LOSSES)}.")
    order: int = _setting(
        2, "Order of the Taylor expansion; higher is stricter and learns faster, but overfits."
    )
    prior: float | None = _setting(
        None, "Share of the class among all pixels, for the losses that need it (thonecls prior)."
    )
    warmup: int = _setting(0, "Epochs at the beginning with another loss.")
    warmup_loss: str = _setting("bce", "The loss of these epochs.")
    ema: bool = _setting(True, "The result is the teacher, an average of the student over time.")
    beta: float = _setting(0.5, "Weight of the consistency with the teacher; 0 leaves it out.")
    consistency: Literal["kl", "l2"] = _setting("kl", "How student and teacher are compared.")
    alpha: float = _setting(0.99, "Decay of the teacher's moving average.")
    decay: Literal["ramp", "constant"] = _setting(
        "ramp", "Whether the decay grows with the epochs up to alpha, or is alpha from the start."
    )
    rate: float = _setting(1e-4, "Learning rate of SGD in the first epoch.")
    rate_decay: float = _setting(0.995, "Factor on the learning rate after every epoch.")
    momentum: float = _setting(0.9, "Momentum of SGD.")
    weight_decay: float = _setting(1e-4, "Weight decay of SGD.")
    clip: float = _setting(6.0, "Largest global L2 norm of the gradient.")
    settle: float = _setting(
        0.0, "Stop once the unlabeled pixels' mean probability falls by a smaller share; 0: never."
    )
    budget: int = _setting(
        500_000, "Pixels seen at a step; a larger scene is trained on windows of it."
    )
    width: float = _setting(1.0, "Multiplier of the network's channel counts.")
    device: str = _setting("auto", "auto (CUDA, then MPS, then CPU), cpu, cuda or mps.")

    def __post_init__(self) -> None:
        for name in ("epochs", "batches", "order", "budget"):
            _require(self, name, "1 or more", getattr(self, name) >= 1)
        _require(self, "unlabeled", "2 or more", self.unlabeled >= 2)
        _require(self, "warmup", "0 or more", self.warmup >= 0)
        for name in ("beta", "weight_decay"):
            _require(self, name, "0 or more", 0 <= getattr(self, name) < float("inf"))
        for name in ("rate", "clip", "width"):
            _require(self, name, "above 0", 0 < getattr(self, name) < float("inf"))
        for name in ("alpha", "momentum", "settle"):
            _require(self, name, "from 0 to below 1", 0 <= getattr(self, name) < 1)
        _require(self, "rate_decay", "above 0 and at most 1", 0 < self.rate_decay <= 1)
        for name, known in (
            ("loss", LOSSES),
            ("warmup_loss", LOSSES),
            ("consistency", CONSISTENCIES),
            ("decay", DECAYS),
        ):
            _require(self, name, f"one of {', '.join(known)}", getattr(self, name) in known)
        _require(self, "beta", "0 where there is no teacher (ema)", self.ema or self.beta == 0)
        _require(self, "prior", "between 0 and 1", self.prior is None or 0 < self.prior < 1)


def _require(config: TrainConfig, name: str, rule: str, holds: bool) -> None:
    if not holds:
        raise ConfigError(f"'{name}' must be {rule}. Got {getattr(config, name)!r} instead")


PAPER = TrainConfig()
# What this choice rests on: docs/adr/0005-fast-preset.md.
FAST = replace(PAPER, epochs=100, rate=1e-3, rate_decay=1.0, settle=0.02)
SETTLED_OVER = 3  # epochs over which the fall is averaged
LEARNING = 0.8  # of its largest value: below, the mean probability has clearly fallen
PRESETS = {"paper": PAPER, "fast": FAST}


class Terms(NamedTuple):
    """The parts of one step's loss, as scalars; only `loss` carries a gradient."""

    loss: Tensor
    positive: Tensor
    unlabeled: Tensor
    consistency: Tensor
    share: Tensor


class Figures(NamedTuple):
    """Means over an epoch's steps.

    share: the mean probability of the unlabeled pixels, by the teacher where it is evaluated;
    gradient_norm: before clipping.
    """

    loss: float
    positive: float
    unlabeled: float
    consistency: float
    share: float
    gradient_norm: float


@dataclass(frozen=True)
class Progress:
    """Where training stands: epoch and step count from 1; figures are means since the epoch began.

    Every step sees so many `pixels`, all of a scene within the budget; snapshot() gives the model
    as it is now.
    """

    epoch: int
    epochs: int
    step: int
    steps: int
    figures: Figures
    pixels: int
    snapshot: Callable[[], Model]


def fit(
    scene: Source | NDArray[Any],
    labels: Labels | ArrayLike,
    *,
    config: TrainConfig = PAPER,
    generator: torch.Generator,
    on_epoch: Callable[[Progress], None] | None = None,
    on_step: Callable[[Progress], bool | None] | None = None,
    checkpoint: Path | None = None,
    checkpoint_every: float = EVERY,
    resume: bool = False,
) -> Model:
    """Train the network on one scene and return its teacher (without one, itself) as a `Model`.

    scene: a scene, a source, or a (C, H, W) array; labels: `Labels`, or positives as an (H, W)
    mask or (n, 2) row/column pairs. A scene of more than `config.budget` pixels is trained on
    sheets of its windows, one a step, with unlabeled pixels drawn from them. The same generator
    state gives the same bits on the same machine. `on_epoch` and `on_step` report progress; when
    `on_step` returns True, training ends there with a usable model. With a `checkpoint` path the
    state is kept there every so many seconds and at the end; with `resume`, training goes on from
    it if it exists, to the same bits.
    """
    ground = prepare(scene, labels, config, generator)
    state = _start(ground, config, generator)
    keeper = Keeper(checkpoint, _fingerprint(config, ground, state), checkpoint_every)
    if resume:
        keeper.restore_(state)
    generator.set_state(state.shuffle)
    stopped = False

    def snapshot() -> Model:
        facts = {
            **training_facts(config, ground),
            "seconds": round(state.seconds, 3),
            "history": _history(state),
            "finished": _finished(state, config),
        }
        return ground.model(state.teacher if config.ema else state.student, facts)

    while not (stopped or _finished(state, config)):
        batches = ground.batches(config.batches, generator)
        for index, batch in batches[state.step :]:
            began = time.perf_counter()
            cube, valid = ground.inputs(index)
            figures = _step_(state, cube, valid, batch, config)
            state.sums = [a + b for a, b in zip(state.sums, figures, strict=True)]
            state.step += 1
            state.seconds += time.perf_counter() - began
            keeper.keep(state)
            if on_step is not None:
                stopped = bool(
                    on_step(_progress(state, config, len(batches), ground.pixels, snapshot))
                )
            if stopped and state.step < len(batches):
                break
        else:
            progress = _progress(state, config, len(batches), ground.pixels, snapshot)
            state.history.append(list(progress.figures))
            state.epoch, state.step, state.sums = state.epoch + 1, 0, [0.0] * len(Figures._fields)
            state.shuffle = generator.get_state()
            if on_epoch is not None:
                on_epoch(progress)
    keeper.keep(state, now=True)
    return snapshot()


def prepare(
    scene: Source | NDArray[Any],
    labels: Labels | ArrayLike,
    config: TrainConfig,
    generator: torch.Generator,
) -> Ground:
    """The ground for a training with these settings."""
    for name in {config.loss, config.warmup_loss} if config.warmup else {config.loss}:
        if config.prior is None and "prior" in inspect.signature(LOSSES[name]).parameters:
            raise ConfigError(
                f"the loss '{name}' needs the class prior, the share of the class among all "
                "pixels: set 'prior', or have it estimated (thonecls prior, --estimate-prior)"
            )
    return Ground.prepare(
        scene,
        labels,
        unlabeled=config.unlabeled,
        budget=config.budget,
        batches=config.batches,
        device=resolve_device(config.device),
        generator=generator,
    )


def _step_(
    state: State,
    cube: Tensor,
    valid: Tensor | None,
    batch: Batch,
    config: TrainConfig,
) -> list[float]:
    """One step of Algorithm 1: loss, gradient, clipping, SGD, and the teacher's average."""
    for group in state.optimizer.param_groups:
        group["lr"] = config.rate * config.rate_decay**state.epoch
    now = replace(config, loss=config.warmup_loss) if state.epoch < config.warmup else config
    terms = objective(state.student, state.teacher, cube, batch, now, valid)
    state.optimizer.zero_grad()
    terms.loss.backward()
    norm = torch.nn.utils.clip_grad_norm_(state.student.parameters(), config.clip)
    state.optimizer.step()
    if config.ema:
        # By epoch, not by step, as in the authors' runs.
        ema_update_(state.teacher, state.student, DECAYS[config.decay](state.epoch, config.alpha))
    figures: list[float] = torch.stack([*terms, norm]).tolist()
    if not np.isfinite(figures).all():
        raise TrainingError(
            f"the loss is no longer finite in epoch {state.epoch + 1}: lower the learning rate "
            f"(now {config.rate:g}), and check the cube for extreme values"
        )
    return figures


def objective(
    student: FreeOCNet,
    teacher: FreeOCNet,
    cube: Tensor,
    batch: Batch,
    config: TrainConfig,
    valid: Tensor | None = None,
) -> Terms:
    """The student's loss on one pseudo-batch, Eq. 20: PU loss + beta * consistency.

    cube: (N, C, H, W); batch: flat indices of positive and of unlabeled pixels. Only these pixels
    count, so the decoder is evaluated nowhere else, and the teacher not at all when beta is 0.
    """
    pixels = torch.cat(batch)
    on_cuda = cube.device.type == "cuda"

    def logits_of(net: FreeOCNet) -> Tensor:
        with torch.autocast(cube.device.type, torch.bfloat16, enabled=on_cuda):
            return net.logits_at(cube, pixels, valid).float()

    target = None
    if config.beta:
        with torch.no_grad():  # before the student, whose pass keeps memory for its gradient
            target = logits_of(teacher)
    logits = logits_of(student)
    of_positive, of_unlabeled = logits.split([len(part) for part in batch])
    pu = LOSSES[config.loss](of_positive, of_unlabeled, **_hyper(config))
    part = positive_loss(of_positive.detach())
    if target is None:
        share = torch.sigmoid(of_unlabeled.detach()).mean()
        return Terms(pu, part, pu.detach() - part, torch.zeros_like(part), share)
    consistency = CONSISTENCIES[config.consistency](logits, target)
    loss = pu + config.beta * consistency
    share = torch.sigmoid(target[len(batch[0]) :]).mean()
    return Terms(loss, part, pu.detach() - part, consistency.detach(), share)


def _finished(state: State, config: TrainConfig) -> bool:
    """Whether all epochs are done, or the map has settled."""
    share = [figures[Figures._fields.index("share")] for figures in state.history]
    return state.epoch >= config.epochs or has_settled(share, config.settle)


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


def _hyper(config: TrainConfig) -> dict[str, Any]:
    """Those settings that the loss takes, by the names of its arguments after the logits."""
    names = list(inspect.signature(LOSSES[config.loss]).parameters)[2:]
    return {f.name: getattr(config, f.name) for f in fields(config) if f.name in names}


def _start(ground: Ground, config: TrainConfig, generator: torch.Generator) -> State:
    # Two initialisations: the teacher becomes a copy of the student in the first epoch.
    student, teacher = (ground.new_net(config.width, generator) for _ in range(2))
    optimizer = optimizer_of(student, config)
    sums = [0.0] * len(Figures._fields)
    return State(student, teacher, optimizer, generator.get_state(), sums)


def optimizer_of(net: FreeOCNet, config: TrainConfig) -> torch.optim.SGD:
    """The optimiser of one network."""
    return torch.optim.SGD(
        net.parameters(),
        lr=config.rate,
        momentum=config.momentum,
        weight_decay=config.weight_decay,
    )


def _progress(
    state: State, config: TrainConfig, steps: int, pixels: int, snapshot: Callable[[], Model]
) -> Progress:
    figures = Figures(*(total / state.step for total in state.sums))
    return Progress(state.epoch + 1, config.epochs, state.step, steps, figures, pixels, snapshot)


def _fingerprint(config: TrainConfig, ground: Ground, start: State) -> str:
    """Tells one training from another: settings, scene, labels and random numbers."""
    digest = hashlib.sha256(json.dumps(asdict(config)).encode())
    digest.update(start.shuffle.numpy().tobytes())
    arrays = [ground.statistics.mean.tobytes(), ground.statistics.std.tobytes()]
    for sheet in ground.sheets:
        arrays += [sheet.origins.tobytes()]
        arrays += [sheet.labels.positive.tobytes(), sheet.labels.unlabeled.tobytes()]
    for array in arrays:
        digest.update(array)
    return digest.hexdigest()


def _history(state: State) -> dict[str, list[float]]:
    """Every figure by epoch."""
    columns = zip(*state.history, strict=True) if state.history else [[]] * len(Figures._fields)
    return {name: list(column) for name, column in zip(Figures._fields, columns, strict=True)}


def training_facts(config: TrainConfig, ground: Ground) -> dict[str, Any]:
    """What a model remembers of its training, ready for JSON."""
    source, sheets = ground.source, ground.sheets
    return {
        "config": asdict(config),
        "scene": {"bands": source.bands, "rows": source.shape[0], "columns": source.shape[1]},
        "windows": sum(len(sheet.origins) for sheet in sheets),
        "window": list(sheets[0].size),
        "positives": sum(sheet.labels.positive.size for sheet in sheets),
        "unlabeled": sum(sheet.labels.unlabeled.size for sheet in sheets),
        "versions": {"thonecls": version("thonecls"), "torch": torch.__version__},
        "python": platform.python_version(),
    }
