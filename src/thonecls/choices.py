"""Names that settings may take; what they stand for needs torch, and names do not.

A test holds them to the dictionaries of `thonecls.method.losses` and `thonecls.method.teacher`.
"""

import sys
from collections.abc import Collection
from typing import Literal

Protocol = Literal["paper", "resampled", "spatial", "half", "plot"]
LOSSES = (
    "taylor",
    "variational",
    "vpu",
    "upu",
    "nnpu",
    "abs-negative",
    "oc",
    "oc-warmup",
    "bce",
    "mae",
    "mse",
    "gce",
    "sce",
    "tce",
    "dist-pu",
)
CONSISTENCIES = ("kl", "l2")
DECAYS = ("ramp", "constant")


def known_losses() -> Collection[str]:
    """The losses by name; once the catalogue is loaded, with what was added to it."""
    loaded = sys.modules.get("thonecls.method.losses")
    known: Collection[str] = LOSSES if loaded is None else loaded.LOSSES
    return known
