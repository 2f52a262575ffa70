"""What is to be run: cells, one training each."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, fields, replace
from typing import Any, Literal, get_args

from thonecls.benchmark import Protocol as Protocol
from thonecls.benchmark.paper import PAPER_SETTINGS, Setting
from thonecls.benchmark.targets import data_of
from thonecls.errors import ConfigError
from thonecls.method.config import PRESETS, TrainConfig
from thonecls.methods import Method
from thonecls.splits import PROTOCOLS

Preset = Literal["paper", "fast", "collage"]
PriorName = Literal["paper", "true", "km1", "km2", "bbe"]

# How people come by their labels, each as changes of a cell. Their number is a field of its own.
MECHANISMS: dict[str, dict[str, Any]] = {
    "scattered": {"protocol": "resampled"},
    "half": {"protocol": "half"},
    "plot": {"protocol": "plot"},
    "spatial": {"protocol": "spatial"},
    "polygons": {"protocol": "polygons"},
    "noisy": {"protocol": "noisy"},
    "20 labels": {"protocol": "resampled", "positives": 20},
    "400 labels": {"protocol": "resampled", "positives": 400},
}


@dataclass(frozen=True)
class Cell:
    """One training and its scores; everything that its result depends on.

    prior: for the methods that need one: a number, "true", an estimator, or "paper" (the estimate
    by KM2 that the paper used, or ours on what it did not map); settings: changes to the preset,
    as sorted (name, value) pairs.
    """

    dataset: str
    target: int
    method: str = "t-honecls"
    preset: Preset = "paper"
    protocol: Protocol = "paper"
    seed: int = 0
    positives: int = 100
    prior: float | PriorName | None = None
    settings: tuple[tuple[str, Setting], ...] = ()

    def __post_init__(self) -> None:
        bed = data_of(self.dataset)
        if self.method not in bed.methods:
            raise ConfigError(
                f"there is no method {self.method!r} for {self.dataset}: `thonecls methods` lists "
                "them"
            )
        if self.preset not in PRESETS:
            raise ConfigError(f"'preset' is {' or '.join(PRESETS)}. Got {self.preset!r} instead")
        if self.protocol not in PROTOCOLS:
            raise ConfigError(
                f"'protocol' is one of {', '.join(PROTOCOLS)}. Got {self.protocol!r} instead"
            )
        if bed.allowed:
            self._check_allowed(bed.allowed)
        if isinstance(self.prior, str) and self.prior not in get_args(PriorName):
            known = ", ".join(get_args(PriorName))
            raise ConfigError(f"'prior' is a number or one of {known}. Got {self.prior!r} instead")
        if bed.methods[self.method].needs_prior and self.prior is None:
            raise ConfigError(
                f"{self.method} needs the class prior: say prior='paper', 'true', an estimator or "
                "a number"
            )
        unknown = {name for name, _ in self.settings} - {f.name for f in fields(TrainConfig)}
        if unknown:
            raise ConfigError(f"there is no setting {unknown.pop()!r}")

    def _check_allowed(self, allowed: Mapping[str, tuple[Any, ...]]) -> None:
        """Refuse what only scenes have."""
        for name, known in allowed.items():
            if getattr(self, name) not in known:
                raise ConfigError(
                    f"on images '{name}' is {' or '.join(map(str, known))}. "
                    f"Got {getattr(self, name)!r} instead"
                )
        uses = methods_for(self.dataset)[self.method].learning.uses
        ignored = {name for name, _ in self.settings} - set(uses or ())
        if ignored:
            raise ConfigError(f"{self.method} on images has no setting {ignored.pop()!r}")
        if isinstance(self.prior, str) and self.prior != "true":
            raise ConfigError(
                f"on images 'prior' is a number or 'true'. Got {self.prior!r} instead"
            )

    @property
    def id(self) -> str:
        """A short name that no other cell has; a field left at its default has no part in it."""
        return hashlib.sha256(json.dumps(self.as_dict(), sort_keys=True).encode()).hexdigest()[:16]

    def as_dict(self) -> dict[str, Any]:
        """The fields that differ from their defaults, ready for JSON."""
        kept = {
            f.name: getattr(self, f.name)
            for f in fields(self)
            if f.default is MISSING or getattr(self, f.name) != f.default
        }
        return {**kept, "settings": dict(self.settings)} if self.settings else kept

    def __str__(self) -> str:
        changes = [f"{name}={value}" for name, value in self.settings]
        if self.prior is not None:
            changes.append(f"prior={self.prior}")
        if self.positives != Cell.positives:
            changes.append(f"positives={self.positives}")
        words = [self.dataset, str(self.target), self.method, self.preset]
        if self.protocol != Cell.protocol:
            words.append(self.protocol)
        return " ".join([*words, *changes, f"seed {self.seed}"])


def methods_for(dataset: str) -> Mapping[str, Method]:
    """The methods that can be run on a dataset."""
    return data_of(dataset).methods


def cell_of(content: dict[str, Any]) -> Cell:
    """A cell from what `Cell.as_dict` gave."""
    settings = tuple(sorted(content.get("settings", {}).items()))
    return Cell(**{**content, "settings": settings})


def config_of(cell: Cell, prior: float | None = None) -> TrainConfig:
    """The settings of a cell's training; of a method without a network, those that labels need."""
    base = BASES[data_of(cell.dataset).on](cell)
    return methods_for(cell.dataset)[cell.method].configure(
        base, prior=prior, **dict(cell.settings)
    )


def _preset_of(cell: Cell) -> TrainConfig:
    """The preset, on what the paper mapped with the paper's own settings."""
    base = PRESETS[cell.preset]
    if cell.preset == "paper":
        own = {
            **PAPER_SETTINGS.get(cell.dataset, {}),
            **PAPER_SETTINGS.get((cell.dataset, cell.target), {}),
        }
        base = replace(base, **own)  # type: ignore[arg-type]  # checked by TrainConfig
    return base


# What the settings of a cell are laid upon: a preset, or what suits the images, by their name.
BASES: dict[str, Callable[[Cell], TrainConfig | str]] = {
    "scene": _preset_of,
    "images": lambda cell: cell.dataset,
}


def changed(cell: Cell, change: dict[str, Any]) -> Cell:
    """The cell with other fields, or with more settings, by their names.

    What the cell sets already, to another value, is refused. A prior is left out where the method
    needs none.

    >>> str(changed(Cell("indian-pines", 2), {"method": "taylor", "order": 5}))
    'indian-pines 2 taylor paper order=5 seed 0'
    """
    names = {f.name for f in fields(Cell)}
    own = {name: value for name, value in change.items() if name in names}
    settings = {name: value for name, value in change.items() if name not in names}
    known = dict(cell.settings)
    clash = [name for name, value in settings.items() if known.get(name, value) != value]
    clash += [n for n, value in own.items() if cell.as_dict().get(n, value) != value]
    method = methods_for(cell.dataset).get(own.get("method", cell.method))
    if method is not None and not method.needs_prior:
        own.pop("prior", None)
    if clash:
        raise ConfigError(f"{cell} sets '{clash.pop()}' itself: leave that option out")
    return replace(cell, settings=tuple(sorted({**known, **settings}.items())), **own)
