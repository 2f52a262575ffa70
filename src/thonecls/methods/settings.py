"""What each method on FreeOCNet sets in the one training loop."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from thonecls.errors import ConfigError
from thonecls.method.config import TrainConfig

# The baselines share the paper's schedule; they are single networks, without clipping.
ALONE: dict[str, Any] = {"beta": 0.0, "ema": False, "clip": 1e9, "members": 0, "patience": 0}
SETTINGS: dict[str, dict[str, Any]] = {
    "t-honecls": {},
    "taylor": {"beta": 0.0, "ema": False},
    "variational": {"loss": "variational", **ALONE},
    # Clipped: its MixUp term has no bound. It chooses its epoch by itself.
    "vpu": {"loss": "vpu", **ALONE, "clip": 6.0},
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
    "pan": {"loss": "bce", "settle": 0.0, **ALONE},  # its map moves in every second epoch only
    "pan-reference": {"loss": "bce", "settle": 0.0, **ALONE},
    "pan-as-run": {"loss": "bce", **ALONE},  # its discriminator, which is all that learns
}


def settings(method: str, base: TrainConfig, **change: Any) -> TrainConfig:
    """The settings of a method, on top of a preset; `change` overrides both."""
    if method not in SETTINGS:
        raise ConfigError(f"no network is trained by {method!r}: take one of {', '.join(SETTINGS)}")
    return replace(base, **{**SETTINGS[method], **change})
