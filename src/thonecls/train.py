"""Training: Algorithm 1 of the paper, from a scene and a few positive pixels to a `Model`."""

from __future__ import annotations

import copy
import platform
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from importlib.metadata import version
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from thonecls.errors import ConfigError, TrainingError
from thonecls.frozen import freeze
from thonecls.losses import LOSSES, positive_loss, taylor_variational, variational
from thonecls.model import Model, resolve_device
from thonecls.net import FreeOCNet
from thonecls.sampler import pseudo_batches
from thonecls.scene import Scene, as_scene, band_statistics, standardize
from thonecls.splits import Labels, check_labels, draw_labels, positive_mask
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
    loss: Literal["taylor", "variational"] = _setting("taylor", "The PU loss.")
    order: int = _setting(
        2, "Order of the Taylor expansion; higher is stricter and learns faster, but overfits."
    )
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
    width: float = _setting(1.0, "Multiplier of the network's channel counts.")
    device: str = _setting("auto", "auto (CUDA, then MPS, then CPU), cpu, cuda or mps.")

    def __post_init__(self) -> None:
        for name in ("epochs", "batches", "order"):
            _require(self, name, "1 or more", getattr(self, name) >= 1)
        _require(self, "unlabeled", "2 or more", self.unlabeled >= 2)
        for name in ("beta", "weight_decay"):
            _require(self, name, "0 or more", 0 <= getattr(self, name) < float("inf"))
        for name in ("rate", "clip", "width"):
            _require(self, name, "above 0", 0 < getattr(self, name) < float("inf"))
        for name in ("alpha", "momentum"):
            _require(self, name, "from 0 to below 1", 0 <= getattr(self, name) < 1)
        _require(self, "rate_decay", "above 0 and at most 1", 0 < self.rate_decay <= 1)
        for name, known in (
            ("loss", LOSSES),
            ("consistency", CONSISTENCIES),
            ("decay", DECAYS),
        ):
            _require(self, name, f"one of {', '.join(known)}", getattr(self, name) in known)


def _require(config: TrainConfig, name: str, rule: str, holds: bool) -> None:
    if not holds:
        raise ConfigError(f"'{name}' must be {rule}. Got {getattr(config, name)!r} instead")


PAPER = TrainConfig()
FAST = replace(PAPER, epochs=35, rate=1e-3, rate_decay=0.95)
PRESETS = {"paper": PAPER, "fast": FAST}


class Terms(NamedTuple):
    """The parts of one step's loss, as scalars; only `loss` carries a gradient."""

    loss: Tensor
    positive: Tensor
    unlabeled: Tensor
    consistency: Tensor


class Figures(NamedTuple):
    """Means over an epoch's steps; the gradient norm is taken before clipping."""

    loss: float
    positive: float
    unlabeled: float
    consistency: float
    gradient_norm: float


@dataclass(frozen=True)
class Progress:
    """Where training stands: epoch and step count from 1; figures are means since the epoch began.

    Every step sees all `pixels` of the scene. snapshot() gives the model as it is now.
    """

    epoch: int
    epochs: int
    step: int
    steps: int
    figures: Figures
    pixels: int
    snapshot: Callable[[], Model]


def fit(
    scene: Scene | NDArray[Any],
    labels: Labels | ArrayLike,
    *,
    config: TrainConfig = PAPER,
    generator: torch.Generator,
    on_epoch: Callable[[Progress], None] | None = None,
    on_step: Callable[[Progress], bool | None] | None = None,
) -> Model:
    """Train the network on one scene and return its teacher as a `Model`.

    scene: a `Scene` or a (C, H, W) array; labels: `Labels`, or positives as an (H, W) mask or
    (n, 2) row/column pairs. The same generator state gives the same bits on the same machine.
    `on_epoch` and `on_step` report progress; when `on_step` returns True, training ends there
    with a usable model.
    """
    scene = as_scene(scene)
    labels = _as_labels(labels, scene, config, generator)
    device = resolve_device(config.device)
    statistics = band_statistics(scene)
    cube = torch.from_numpy(standardize(scene, statistics)).to(device)[None]
    valid = None if scene.valid.all() else torch.from_numpy(scene.valid).to(device)[None, None]
    positive, unlabeled = (torch.from_numpy(part) for part in (labels.positive, labels.unlabeled))
    # Two initialisations: the teacher becomes a copy of the student in the first epoch.
    student, teacher = (_new_net(scene.bands, config, generator).to(device) for _ in range(2))
    optimizer = _optimizer(student, config)
    scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, config.rate_decay)
    history: list[Figures] = []
    started, stopped = time.perf_counter(), False

    def snapshot() -> Model:
        facts = _facts(config, scene, labels, history)
        facts["seconds"] = round(time.perf_counter() - started, 3)
        facts["finished"] = len(history) == config.epochs and not stopped
        frozen = freeze(teacher, cube, valid)
        return Model(copy.deepcopy(teacher).eval(), statistics, frozen, facts)

    for epoch in range(config.epochs):
        decay = DECAYS[config.decay](epoch, config.alpha)
        batches = pseudo_batches(positive, unlabeled, config.batches, generator)
        sums = np.zeros(len(Figures._fields))
        for step, (p, u) in enumerate(batches, start=1):
            terms = objective(student, teacher, cube, (p.to(device), u.to(device)), config, valid)
            optimizer.zero_grad()
            terms.loss.backward()
            norm = torch.nn.utils.clip_grad_norm_(student.parameters(), config.clip)
            optimizer.step()
            ema_update_(teacher, student, decay)
            sums += _checked(torch.stack([*terms, norm]).tolist(), epoch, config)
            figures = Figures(*(sums / step).tolist())
            place = (epoch + 1, config.epochs, step, len(batches))
            progress = Progress(*place, figures, scene.valid.size, snapshot)
            if on_step is not None and on_step(progress):
                stopped = True
                break
        history.append(progress.figures)
        if stopped:
            break
        scheduler.step()
        if on_epoch is not None:
            on_epoch(progress)
    return snapshot()


def objective(
    student: FreeOCNet,
    teacher: FreeOCNet,
    cube: Tensor,
    batch: tuple[Tensor, Tensor],
    config: TrainConfig,
    valid: Tensor | None = None,
) -> Terms:
    """The student's loss on one pseudo-batch, Eq. 20: PU loss + beta * consistency.

    cube: (N, C, H, W); batch: flat indices of positive and of unlabeled pixels. Only these pixels
    count, so the decoder is evaluated nowhere else, and the teacher not at all when beta is 0.
    """
    pixels = torch.cat(batch)
    on_cuda = cube.device.type == "cuda"
    with torch.autocast(cube.device.type, torch.bfloat16, enabled=on_cuda):
        logits = student.logits_at(cube, pixels, valid).float()
    of_positive, of_unlabeled = logits.split([len(part) for part in batch])
    if config.loss == "taylor":
        pu = taylor_variational(of_positive, of_unlabeled, config.order)
    else:
        pu = variational(of_positive, of_unlabeled)
    part = positive_loss(of_positive.detach())
    if config.beta == 0:
        return Terms(pu, part, pu.detach() - part, torch.zeros_like(part))
    with torch.no_grad(), torch.autocast(cube.device.type, torch.bfloat16, enabled=on_cuda):
        target = teacher.logits_at(cube, pixels, valid).float()
    consistency = CONSISTENCIES[config.consistency](logits, target)
    loss = pu + config.beta * consistency
    return Terms(loss, part, pu.detach() - part, consistency.detach())


def _new_net(bands: int, config: TrainConfig, generator: torch.Generator) -> FreeOCNet:
    """A network whose weights depend on `generator` alone; the global state is left as it was."""
    seed = int(torch.randint(2**62, (), generator=generator))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return FreeOCNet(bands, width=config.width)


def _optimizer(student: FreeOCNet, config: TrainConfig) -> torch.optim.SGD:
    return torch.optim.SGD(
        student.parameters(),
        lr=config.rate,
        momentum=config.momentum,
        weight_decay=config.weight_decay,
    )


def _as_labels(
    labels: Labels | ArrayLike, scene: Scene, config: TrainConfig, generator: torch.Generator
) -> Labels:
    if not isinstance(labels, Labels):
        mask = positive_mask(labels, scene.shape)
        rng = np.random.default_rng(int(torch.randint(2**62, (), generator=generator)))
        labels = draw_labels(mask, scene.valid, config.unlabeled, rng)
    check_labels(labels, scene.valid)
    return labels


def _checked(figures: list[float], epoch: int, config: TrainConfig) -> list[float]:
    if not np.isfinite(figures).all():
        raise TrainingError(
            f"the loss is no longer finite in epoch {epoch + 1}: lower the learning rate "
            f"(now {config.rate:g}), and check the cube for extreme values"
        )
    return figures


def _facts(
    config: TrainConfig,
    scene: Scene,
    labels: Labels,
    history: list[Figures],
) -> dict[str, Any]:
    """What a model remembers of its training, ready for JSON."""
    return {
        "config": asdict(config),
        "scene": {"bands": scene.bands, "rows": scene.shape[0], "columns": scene.shape[1]},
        "positives": int(labels.positive.size),
        "unlabeled": int(labels.unlabeled.size),
        "history": {name: [getattr(f, name) for f in history] for name in Figures._fields},
        "versions": {"thonecls": version("thonecls"), "torch": torch.__version__},
        "python": platform.python_version(),
    }
