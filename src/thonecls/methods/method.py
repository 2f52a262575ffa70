"""A method of the catalogue: its card, how it learns, and what callers may ask of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any, Literal

from thonecls.errors import ConfigError
from thonecls.method.config import TrainConfig
from thonecls.methods.costs import Costs, ratio_costs

if TYPE_CHECKING:
    import numpy as np
    import torch
    from numpy.typing import ArrayLike, NDArray

    from thonecls.method.model import Crossfit, Model
    from thonecls.method.progress import Control
    from thonecls.methods.scenes import Known, QuickModel
    from thonecls.scene import BoolArray, Source
    from thonecls.splits import Labels

Kind = Literal["the scene", "windows about a pixel", "single spectra", "images"]
Pace = Literal["in steps", "at once"]


@dataclass(frozen=True)
class Learning:
    """How methods of one kind learn: all that tells these kinds apart for those who call them.

    data: what they work on; pace: in many steps from random weights, with checkpoints, or at once;
    uses: the settings of training that they have a use for, None for all; presets: those that they
    start from; several: whether models of several seeds differ; calibrated: whether scores can be
    taken at their word; costs: what training and mapping will take. run, measure, configure:
    functions by their address, called with the method; they load what they need.
    """

    data: Literal["scenes", "images"]
    pace: Pace
    run: str
    measure: str
    configure: str
    uses: tuple[str, ...] | None = None
    presets: Mapping[str, TrainConfig] = field(default_factory=dict)
    several: bool = False
    calibrated: bool = False
    costs: Callable[..., Costs] = ratio_costs


@dataclass(frozen=True)
class Trial:
    """What a method is measured on: a `Scene` or `Images`, labels, and how it is run."""

    data: Any
    labels: Labels
    seed: int
    config: TrainConfig
    control: Control[Any] | None = None


@dataclass(frozen=True)
class Scored:
    """What a method made of its data, and how that went, for a record.

    probability: a map, or of each test image; history: of a training in steps, by epoch; config:
    what it was trained with, where it has settings.
    """

    probability: NDArray[np.float32]
    seconds: float
    threshold: float = 0.5
    history: dict[str, Any] | None = None
    config: TrainConfig | None = None


@dataclass(frozen=True)
class Method:
    """A way to tell one class from the rest; call it with a scene or images, labels and a seed.

    On a scene the result is an (H, W) float32 map in [0, 1], NaN on nodata, and above 0.5 where the
    class is; on images the probability of each test image, (n,).
    on: what it looks at; needs_prior: whether it must be told the share of the class; extra: what
    to install for it; settings: what it sets in the one training loop; negatives: whether it has a
    use for places where the class is not; takes_apart: whether it wants them by themselves, not
    among the unlabeled; coverage: whether it asks where labels come from; learn, score, check: its
    own functions by their address: what trains or fits it, what scores a scene or images with it,
    and what refuses settings before the scene is read.
    """

    minimises: str
    paper: str
    constants: str
    on: Kind
    learning: Learning
    learn: str
    score: str
    check: str = ""
    name: str = ""
    needs_prior: bool = False
    extra: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)
    negatives: bool = False
    coverage: bool = False
    takes_apart: bool = False

    @property
    def network(self) -> bool:
        """Whether it trains a network: in many steps, with checkpoints, on a GPU where there is."""
        return self.learning.pace == "in steps"

    def configure(self, base: Any, **change: Any) -> TrainConfig:
        """The settings on top of a preset, or of what suits a dataset of images, by its name.

        `change` overrides both.
        """
        config: TrainConfig = load(self.learning.configure)(self, base, **change)
        return config

    def used_settings(self, config: TrainConfig) -> dict[str, Any]:
        """The settings that its outcome depends on."""
        uses = self.learning.uses
        return {n: value for n, value in asdict(config).items() if uses is None or n in uses}

    def takes_negatives(self, config: TrainConfig) -> bool:
        """Whether it has a use for places where the class is not; trained on collages none has."""
        return self.negatives and not self.used_settings(config).get("block")

    def refuse_unused(self, given: Mapping[str, Any]) -> None:
        """Refuse settings that it has no use for."""
        uses = self.learning.uses
        for name in sorted(given.keys() - set(given if uses is None else uses)):
            raise ConfigError(
                f"{self.name} has no use for '{name}': leave it out",
                options=(name,),
            )

    def card(self) -> dict[str, Any]:
        """What `thonecls methods --json` tells of it."""
        told = ("minimises", "paper", "constants", "needs_prior", "network")
        own = ("name", *told) if self.on == "images" else (*told, "extra", "on")
        return {name: getattr(self, name) for name in own}

    def __call__(
        self, data: Any, labels: Labels, seed: int = 0, **options: Any
    ) -> NDArray[np.float32]:
        """data: a `Scene` or `Images`."""
        scores: NDArray[np.float32] = load(self.learning.run)(self, data, labels, seed, **options)
        return scores

    def measure(self, trial: Trial) -> Scored:
        """As a call, but with all settings, checkpoints, and what a record tells of it."""
        found: Scored = load(self.learning.measure)(self, trial)
        return found

    def train(
        self,
        scene: Source,
        labels: Labels | ArrayLike,
        *,
        config: TrainConfig,
        generator: torch.Generator,
        control: Control[Model] | None = None,
    ) -> Model:
        """Train its network on a scene; config: as `configure` gives it; the rest as for `fit`."""
        from thonecls.method.fit import prepare  # brings torch

        if self.check:
            load(self.check)(self.name, config)  # before the scene is read
        data = prepare(scene, labels, config, generator)
        model: Model = load(self.learn)(data, config=config, generator=generator, control=control)
        return model

    def fit(
        self, source: Source, positives: BoolArray, known: Known
    ) -> tuple[QuickModel, Crossfit | None]:
        """A model that is there in seconds, and labels by models without them where it has them."""
        found: tuple[QuickModel, Crossfit | None] = load(self.learn)(
            self.name, source, positives, known
        )
        return found


def on_preset(method: Method, base: TrainConfig, **change: Any) -> TrainConfig:
    """The settings of a method on a scene."""
    return replace(base, **{**method.settings, **change})


def load(address: str) -> Callable[..., Any]:
    """A function of this package, by its module in `thonecls.methods` and its name."""
    found: Callable[..., Any] = resolve_name(
        address if address.startswith("thonecls.") else f"thonecls.methods.{address}"
    )
    return found
