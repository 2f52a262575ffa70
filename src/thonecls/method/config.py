"""Settings of training, and the presets to start from."""

from __future__ import annotations

import sys
from collections.abc import Collection
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from thonecls.errors import ConfigError

CHECKPOINT_SECONDS = 10.0  # of training between two checkpoints
# Names alone: what they stand for needs torch. A test holds them to the dictionaries of `losses`
# and `teacher`.
LOSSES = (
    *(
        "taylor",
        "variational",
        "vpu",
        "upu",
        "nnpu",
        "imb-nnpu",
        "abs-negative",
        "oc",
        "oc-warmup",
        "bce",
        "mae",
    ),
    *("mse", "gce", "sce", "tce", "dist-pu"),
)
CONSISTENCIES = ("kl", "l2")
DECAYS = ("ramp", "constant")


def known_losses() -> Collection[str]:
    """The losses by name; once the catalogue is loaded, with what was added to it."""
    loaded = sys.modules.get("thonecls.method.losses")
    known: Collection[str] = LOSSES if loaded is None else loaded.LOSSES
    return known


def _setting(default: Any, help: str) -> Any:
    """A field whose help text the command line shows."""
    return field(default=default, metadata={"help": help})


@dataclass(frozen=True)
class TrainConfig:
    """Settings of training; the defaults are the paper's for Indian Pines."""

    epochs: int = _setting(300, "Passes over the labelled and unlabeled pixels.")
    batches: int = _setting(10, "Pseudo-batches, and so optimisation steps, in an epoch.")
    unlabeled: int = _setting(4000, "Unlabeled pixels drawn from the whole scene.")
    loss: str = _setting(
        "taylor",
        f"The PU loss: {', '.join(LOSSES)}; with options of its own as in gce:exponent=0.7.",
    )
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
    optimizer: Literal["sgd", "adam"] = _setting("sgd", "SGD with momentum, or AdamW.")
    rate: float = _setting(1e-4, "Learning rate in the first epoch.")
    schedule: Literal["exponential", "cosine"] = _setting(
        "exponential", "How the learning rate falls: by rate_decay, or to 0 at the last epoch."
    )
    rate_decay: float = _setting(0.995, "Factor on the learning rate after every epoch.")
    momentum: float = _setting(0.9, "Momentum of SGD.")
    weight_decay: float = _setting(1e-4, "Weight decay.")
    clip: float = _setting(6.0, "Largest global L2 norm of the gradient.")
    settle: float = _setting(
        0.0, "Stop once the unlabeled pixels' mean probability falls by a smaller share; 0: never."
    )
    members: int = _setting(
        0,
        "Networks, each trained without a part of the labels, which tells when to stop and where "
        "to cut; the map is their mean. 0: one network, the last epoch, a cut at 0.5.",
    )
    patience: int = _setting(
        0, "Epochs without a better loss on labels left out before a network is done; 0: all."
    )
    block: int = _setting(
        0, "Side of the blocks, in pixels, that every step sees a collage of; 0: the whole scene."
    )
    label_blocks: int = _setting(10, "Blocks around positives in a collage.")
    random_blocks: int = _setting(30, "Blocks from anywhere in a collage; all their pixels count.")
    gain: float = _setting(
        0.0, "Spread of a random factor on each block of a collage: light and shade."
    )
    components: int = _setting(
        0, "Principal components that a collage has in place of more bands; 0: the bands."
    )
    budget: int = _setting(500_000, "Pixels of a scene that may be seen whole at every step.")
    width: float = _setting(1.0, "Multiplier of the network's channel counts.")
    precision: Literal["float32", "bfloat16"] = _setting(
        "float32",
        "Of a training step on a CPU: bfloat16 is faster on processors that have it, and far "
        "slower on others. On a GPU scenes take bfloat16 in any case.",
    )
    device: str = _setting("auto", "auto (CUDA, then MPS, then CPU), cpu, cuda or mps.")

    def __post_init__(self) -> None:
        for name in ("epochs", "batches", "order", "budget", "label_blocks", "random_blocks"):
            _require(self, name, "1 or more", getattr(self, name) >= 1)
        for name in ("components", "patience"):
            _require(self, name, "0 or more", getattr(self, name) >= 0)
        _require(self, "members", "0, or 2 or more", self.members == 0 or self.members >= 2)
        _require(self, "block", "0, or a multiple of 8", self.block >= 0 and self.block % 8 == 0)
        _require(self, "unlabeled", "2 or more", self.unlabeled >= 2)
        _require(self, "warmup", "0 or more", self.warmup >= 0)
        for name in ("beta", "weight_decay"):
            _require(self, name, "0 or more", 0 <= getattr(self, name) < float("inf"))
        for name in ("rate", "clip", "width"):
            _require(self, name, "above 0", 0 < getattr(self, name) < float("inf"))
        for name in ("alpha", "momentum", "settle", "gain"):
            _require(self, name, "from 0 to below 1", 0 <= getattr(self, name) < 1)
        _require(self, "rate_decay", "above 0 and at most 1", 0 < self.rate_decay <= 1)
        for name, known in (
            ("loss", known_losses()),
            ("warmup_loss", known_losses()),
            ("consistency", CONSISTENCIES),
            ("decay", DECAYS),
            ("optimizer", ("sgd", "adam")),
            ("schedule", ("exponential", "cosine")),
            ("precision", ("float32", "bfloat16")),
        ):
            plain = getattr(self, name).partition(":")[0]  # a loss may have options of its own
            _require(self, name, f"one of {', '.join(known)}", plain in known)
        _require(self, "beta", "0 where there is no teacher (ema)", self.ema or self.beta == 0)
        _require(self, "prior", "between 0 and 1", self.prior is None or 0 < self.prior < 1)


def _require(config: TrainConfig, name: str, rule: str, holds: bool) -> None:
    if not holds:
        raise ConfigError(f"'{name}' must be {rule}. Got {getattr(config, name)!r} instead")


PAPER = TrainConfig()
# What these choices rest on: docs/adr/0005-fast-preset.md and docs/adr/0013-collage.md.
FAST = replace(PAPER, epochs=100, rate=1e-3, rate_decay=1.0, settle=0.02)
COLLAGE = replace(
    PAPER,
    epochs=30,
    order=20,
    optimizer="adam",
    rate=1e-3,
    schedule="cosine",
    block=16,
    gain=0.2,
    components=40,
    width=0.5,
)
PRESETS = {"paper": PAPER, "fast": FAST, "collage": COLLAGE}


def preset_for(pixels: int) -> str:
    """The name of the preset for a scene of so many pixels, where none is asked for.

    >>> preset_for(145 * 145), preset_for(768 * 1536)
    ('fast', 'collage')
    """
    return "collage" if pixels > FAST.budget else "fast"
