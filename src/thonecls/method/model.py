"""A trained model, or several of one scene: what they need to score any other; saved, loaded."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from thonecls.errors import ConfigError, ModelError
from thonecls.method import store
from thonecls.method.frozen import HALO, STRIDE, FrozenNet
from thonecls.method.masked import SceneNorm
from thonecls.method.net import WIDTHS, ChannelGate, FreeOCNet
from thonecls.method.novelty import Novelty
from thonecls.method.store import check_network, check_weights
from thonecls.scene import (
    BandStatistics,
    BoolArray,
    FloatArray,
    Source,
    as_source,
    project,
    standardize,
)

MEMORY = 1.5e9  # bytes that a tile with its halo may take: all in all within 2 GiB
KIND = "model"  # of its file

Member = tuple[FreeOCNet, dict[str, Tensor]]
Ready = Callable[[FloatArray, BoolArray], FloatArray]  # z-scored (C, H, W), valid -> (H, W)


class Scoring(Protocol):
    """A model that maps scenes window by window: a network, or a density ratio.

    halo: how many pixels to each side have a say; tile: the side of a window that takes little
    memory.
    """

    @property
    def statistics(self) -> BandStatistics: ...
    @property
    def novelty(self) -> Novelty | None: ...
    @property
    def bands(self) -> int: ...
    @property
    def halo(self) -> int: ...
    @property
    def tile(self) -> int: ...
    def ready(self, device: torch.device) -> Ready:
        """Probabilities of a window, once all is where it is needed."""


@dataclass(frozen=True, eq=False)
class Model:
    """The teacher network with all it needs to map a scene; or several, whose mean is the map.

    frozen: what norms and gates saw of the training scene (see `frozen.freeze`);
    training: JSON-ready facts about how it came to be (config, history, versions, counts);
    ceiling: what counts as certain: probabilities are divided by it, and cut at 1; wavelengths:
    of its bands in nm, where they are known; novelty: what it takes for usual, where it is known;
    members: further networks, each with what it froze; threshold: above which a pixel is mapped.
    """

    net: FreeOCNet
    statistics: BandStatistics
    frozen: dict[str, Tensor]
    training: dict[str, Any] = field(default_factory=dict)
    ceiling: float = 1.0
    wavelengths: tuple[float, ...] | None = None
    novelty: Novelty | None = None
    members: tuple[Member, ...] = ()
    threshold: float = 0.5

    @property
    def networks(self) -> tuple[Member, ...]:
        """All of them, the first included."""
        return (self.net, self.frozen), *self.members

    @property
    def bands(self) -> int:
        return len(self.statistics.mean)

    @property
    def halo(self) -> int:
        """How many pixels to each side have a say."""
        return HALO

    @property
    def tile(self) -> int:
        """The side of a tile that keeps to `MEMORY`: two copies of the cube, and the features."""
        a_pixel = 4 * (2 * self.bands + 4 * WIDTHS[0])
        return max(STRIDE * 8, int((MEMORY / a_pixel) ** 0.5) - 2 * HALO)

    def ready(self, device: torch.device) -> Ready:
        """Probabilities of a z-scored window, by the networks on a device."""
        nets = [FrozenNet(*network, device) for network in self.networks]

        def probability(cube: FloatArray, valid: BoolArray) -> FloatArray:
            with torch.inference_mode():
                taken = torch.from_numpy(project(cube, self.statistics)).to(device)[None]
                maps = [torch.sigmoid(net(taken)) for net in nets]
                mean: FloatArray = (sum(maps[1:], maps[0]) / len(maps)).cpu().numpy()
            if self.ceiling != 1:
                mean = np.minimum(mean / np.float32(self.ceiling), 1)
            return mean

        return probability

    def score(
        self, cube: Source | NDArray[Any], *, device: str = "auto", tile: int | None = None
    ) -> NDArray[np.float32]:
        """Probability of the target class, (H, W) float32, NaN on nodata.

        cube: a scene, a source, or a (C, H, W) array, with the bands that the model was trained
        on. The tile's side bounds the memory, and does not change the result.
        """
        return score_whole(self, cube, device, tile)

    def score_windows(
        self, source: Source, *, device: str = "auto", tile: int | None = None
    ) -> Iterator[tuple[slice, slice, NDArray[np.float32]]]:
        """Score a scene of any size window by window: rows, columns and their probabilities.

        Each window is read with a halo as wide as the network looks, so the result is exact, and
        only one window is held at a time.
        """
        return Scorer([self], device=device).all_windows(source, tile)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write one safetensors file, whole or not at all. It holds no code."""
        tensors = {
            "bands.mean": torch.from_numpy(self.statistics.mean),
            "bands.std": torch.from_numpy(self.statistics.std),
        }
        if self.statistics.axes is not None:
            tensors["bands.axes"] = torch.from_numpy(self.statistics.axes)
        for prefix, (net, frozen) in zip(_prefixes(len(self.networks)), self.networks, strict=True):
            tensors |= store.prefixed(f"{prefix}net.", net.state_dict())
            tensors |= store.prefixed(f"{prefix}frozen.", frozen)
        about: dict[str, Any] = {
            "net": self.net.settings,
            "training": self.training,
            "ceiling": self.ceiling,
            "wavelengths": self.wavelengths,
            "threshold": self.threshold,
            "networks": len(self.networks),
        }
        save_novelty(self.novelty, about, tensors)
        store.save(Path(path), KIND, about, tensors)

    @staticmethod
    def load(path: str | os.PathLike[str]) -> Model:
        """Read what `save` wrote; refuse a damaged file and one of another version."""
        about, tensors = store.load(Path(path), KIND)
        check_network(Path(path), about, tensors, ("net.", "frozen.", "member."))
        prefixes = _prefixes(about.get("networks", 1))
        _check_weights(Path(path), about["net"], tensors, prefixes)
        networks = []
        for prefix in prefixes:
            net = FreeOCNet(**about["net"])
            net.load_state_dict(store.part(tensors, f"{prefix}net."))
            networks.append((net.eval(), store.part(tensors, f"{prefix}frozen.")))
        bands = store.part(tensors, "bands.")
        statistics = BandStatistics(**{name: array.numpy() for name, array in bands.items()})
        # Older files know nothing of these.
        ceiling, wavelengths = about.get("ceiling", 1.0), about.get("wavelengths")
        wavelengths = None if wavelengths is None else tuple(wavelengths)
        return Model(
            networks[0][0],
            statistics,
            networks[0][1],
            about["training"],
            ceiling,
            wavelengths,
            load_novelty(about, tensors),
            tuple(networks[1:]),
            about.get("threshold", 0.5),
        )


def _check_weights(
    path: Path, settings: dict[str, Any], tensors: dict[str, Tensor], prefixes: Sequence[str]
) -> None:
    """Compare shapes before a network is built: its settings could ask for any memory."""
    with torch.device("meta"):  # shapes without memory
        plan = FreeOCNet(**settings)
    weights = {name: tuple(tensor.shape) for name, tensor in plan.state_dict().items()}
    norms: dict[str, tuple[int, ...]] = {}
    gates: dict[str, tuple[int, ...]] = {}
    for name, module in plan.named_modules():
        if isinstance(module, SceneNorm):
            norms[name] = (2, module.num_groups)
        elif isinstance(module, ChannelGate):
            gates[name] = (module.width,)
    for prefix in prefixes:
        own = store.part(tensors, prefix)
        if not prefix:
            own = {k: t for k, t in own.items() if k.startswith(("net.", "frozen."))}
        check_weights(path, own, weights, norms, gates)
    members = {name for name in tensors if name.startswith("member.")}
    if stray := [name for name in members if not name.startswith(tuple(prefixes[1:]))]:
        raise ModelError(
            f"{path} holds no model that can be used (it has an array {min(stray)[:80]!r} that "
            "does not belong there): copy it again or train again"
        )


def save_novelty(
    novelty: Novelty | None, about: dict[str, Any], tensors: dict[str, Tensor]
) -> None:
    """Add what a model takes for usual to what its file will hold."""
    if novelty is None:
        return
    kept = ("axes", "centre", "scales")
    arrays = {name: torch.from_numpy(getattr(novelty, name)) for name in kept}
    tensors |= store.prefixed("novelty.", arrays)
    about["usual"] = novelty.usual


def load_novelty(about: dict[str, Any], tensors: dict[str, Tensor]) -> Novelty | None:
    """What `save_novelty` added, if it did."""
    if "usual" not in about:
        return None
    arrays = {name: t.numpy() for name, t in store.part(tensors, "novelty.").items()}
    return Novelty(**arrays, usual=about["usual"])


class Crossfit(NamedTuple):
    """Labels by models that have seen no label near them.

    pixels: (n,) flat indices; fold: (n,), from 0; probability: (n,), NaN where no label was left to
    learn from.
    """

    pixels: NDArray[np.int64]
    fold: NDArray[np.int64]
    probability: FloatArray


@dataclass(frozen=True, eq=False)
class Scored:
    """A window of a scene, (H, W) each, NaN on nodata.

    maps: (n, H, W) float32, the probability by each of n models; novelty: multiples of what is
    usual (`Novelty.score`), None where the models do not know it.
    """

    rows: slice
    columns: slice
    maps: FloatArray
    novelty: FloatArray | None = None

    @property
    def probability(self) -> FloatArray:
        """The mean over the models."""
        return np.asarray(self.maps[0] if len(self.maps) == 1 else self.maps.mean(axis=0))

    @property
    def spread(self) -> FloatArray | None:
        """The standard deviation over the models, None of one."""
        return None if len(self.maps) == 1 else np.asarray(self.maps.std(axis=0))


class Scorer:
    """One model, or several of the same scene, made ready to score windows exactly."""

    def __init__(self, models: Sequence[Scoring], *, device: str = "auto") -> None:
        if len({model.bands for model in models}) != 1:
            raise ModelError("the models of an ensemble need the same bands: train them together")
        self.models = list(models)
        self.halo = max(model.halo for model in models)
        on = resolve_device(device)
        self.ready = [model.ready(on) for model in models]
        first = models[0].statistics
        self.alike = all(  # then the bands are scaled once for all models
            np.array_equal(model.statistics.mean, first.mean)
            and np.array_equal(model.statistics.std, first.std)
            for model in models
        )

    def check(self, source: Source) -> None:
        """Refuse a scene with another number of bands."""
        bands = self.models[0].bands
        if source.bands != bands:
            raise ModelError(
                f"the model was trained on {bands} bands, the scene has {source.bands}: "
                "give it the same bands, in the same order"
            )

    def windows(
        self, shape: tuple[int, int], tile: int | None = None
    ) -> Iterator[tuple[slice, slice]]:
        """How a scene of this shape is cut; the tile's side bounds memory, not the result."""
        side = tile or min(model.tile for model in self.models)
        for rows in _tiles(shape[0], side):
            for columns in _tiles(shape[1], side):
                yield rows, columns

    def score(self, source: Source, rows: slice, columns: slice) -> Scored:
        """One window, read with a halo as wide as the network looks."""
        around = self._with_halo(rows, source.shape[0]), self._with_halo(columns, source.shape[1])
        inner = (
            slice(rows.start - around[0].start, rows.stop - around[0].start),
            slice(columns.start - around[1].start, columns.stop - around[1].start),
        )
        maps: list[FloatArray] = []
        novelty = cube = None
        for model, ready in zip(self.models, self.ready, strict=True):
            if cube is None or not self.alike:
                cube, valid = _read_standardized(source, around, model.statistics)
            if novelty is None and model.novelty is not None:
                novelty = model.novelty.score(cube[:, inner[0], inner[1]])
                novelty[~valid[inner]] = np.nan
            probability = ready(cube, valid)
            probability[~valid] = np.nan
            maps.append(probability[inner])
        return Scored(rows, columns, np.stack(maps), novelty)

    def all_windows(
        self, source: Source, tile: int | None = None
    ) -> Iterator[tuple[slice, slice, FloatArray]]:
        """Rows, columns and probabilities of every window of a scene, one at a time."""
        self.check(source)
        windows = (self.score(source, *window) for window in self.windows(source.shape, tile))
        return ((w.rows, w.columns, w.probability) for w in windows)

    def _with_halo(self, part: slice, length: int) -> slice:
        return slice(max(0, part.start - self.halo), min(length, part.stop + self.halo))


def score_whole(
    model: Scoring, cube: Source | NDArray[Any], device: str, tile: int | None
) -> FloatArray:
    """The probabilities of a whole scene in memory: (H, W), NaN on nodata."""
    source = as_source(cube)
    probability = np.empty(source.shape, dtype=np.float32)
    for rows, columns, part in Scorer([model], device=device).all_windows(source, tile):
        probability[rows, columns] = part
    return probability


def _prefixes(count: int) -> list[str]:
    """Of the tensors of so many networks; the first has none, as in files of one."""
    return ["", *(f"member.{i}." for i in range(1, count))]


def _read_standardized(
    source: Source, window: tuple[slice, slice], statistics: BandStatistics
) -> tuple[FloatArray, BoolArray]:
    """The z-scored cube of a window and its valid pixels; the raw one is not held any longer."""
    scene = source.read(*window)
    return standardize(scene, statistics), scene.valid


def resolve_device(name: str) -> torch.device:
    """The torch device of a name; "auto" takes CUDA, then MPS, then the CPU."""
    if name != "auto":
        try:
            device = torch.device(name)
            torch.empty(1, device=device)
        except (RuntimeError, AssertionError, NotImplementedError) as error:
            raise ConfigError(
                f"the device {name!r} cannot be used here: take auto, cpu, cuda or mps"
            ) from error
        return device
    if torch.cuda.is_available():
        return torch.device("cuda")
    return torch.device("mps" if torch.backends.mps.is_available() else "cpu")


def _tiles(length: int, tile: int) -> list[slice]:
    """Cuts of an axis at multiples of the network's stride."""
    step = max(1, -(-tile // STRIDE)) * STRIDE
    return [slice(start, min(start + step, length)) for start in range(0, length, step)]
