"""A trained model: weights, band statistics and what it was trained with; scored and saved."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import safetensors
import torch
from numpy.typing import NDArray
from safetensors.torch import load as load_tensors
from safetensors.torch import save as save_tensors
from torch import Tensor

from thonecls.errors import ConfigError, ModelError
from thonecls.files import write_atomically
from thonecls.frozen import HALO, STRIDE, FrozenNet
from thonecls.net import FreeOCNet
from thonecls.scene import BandStatistics, Scene, as_scene, standardize

FORMAT = 1  # raise it when a saved model can no longer be read by older code


TILE = 768  # rows and columns scored at a time: about 1 GB of memory with their halo


@dataclass(frozen=True, eq=False)
class Model:
    """The teacher network with all it needs to map a scene.

    frozen: what norms and gates saw of the training scene (see `frozen.freeze`);
    training: JSON-ready facts about how it came to be (config, history, versions, counts).
    """

    net: FreeOCNet
    statistics: BandStatistics
    frozen: dict[str, Tensor]
    training: dict[str, Any] = field(default_factory=dict)

    @property
    def bands(self) -> int:
        return len(self.statistics.mean)

    def score(
        self, cube: Scene | NDArray[Any], *, device: str = "auto", tile: int = TILE
    ) -> NDArray[np.float32]:
        """Probability of the target class, (H, W) float32, NaN on nodata.

        cube: a `Scene`, or a (C, H, W) array, of as many bands as the model was trained on.
        The tile's size bounds the memory and does not change the result.
        """
        scene = as_scene(cube)
        probability = np.empty(scene.shape, dtype=np.float32)

        def read(rows: slice, columns: slice) -> Scene:
            return Scene(scene.cube[:, rows, columns], scene.valid[rows, columns])

        for rows, columns, part in self.score_windows(
            read, scene.bands, scene.shape, device=device, tile=tile
        ):
            probability[rows, columns] = part
        return probability

    def score_windows(
        self,
        read: Callable[[slice, slice], Scene],
        bands: int,
        shape: tuple[int, int],
        *,
        device: str = "auto",
        tile: int = TILE,
    ) -> Iterator[tuple[slice, slice, NDArray[np.float32]]]:
        """Score a scene of any size window by window: rows, columns and their probabilities.

        read(rows, columns) gives that part of the scene; only one part is held at a time. Each
        window is read with a halo as wide as the network looks, so the result is exact.
        """
        if bands != self.bands:
            raise ModelError(
                f"the model was trained on {self.bands} bands, the scene has {bands}: "
                "give it the same bands, in the same order"
            )
        place = resolve_device(device)
        net = FrozenNet(self.net, self.frozen, place)
        for rows in _tiles(shape[0], tile):
            for columns in _tiles(shape[1], tile):
                around = [_with_halo(*part) for part in ((rows, shape[0]), (columns, shape[1]))]
                scene = read(*around)
                inputs = torch.from_numpy(standardize(scene, self.statistics)).to(place)
                with torch.inference_mode():
                    probability = torch.sigmoid(net(inputs[None])).cpu().numpy()
                probability[~scene.valid] = np.nan
                inner = tuple(
                    slice(part.start - wide.start, part.stop - wide.start)
                    for part, wide in zip((rows, columns), around, strict=True)
                )
                yield rows, columns, probability[inner]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write one safetensors file, whole or not at all. It holds no code."""
        tensors = {f"net.{name}": t.cpu().contiguous() for name, t in self.net.state_dict().items()}
        tensors["bands.mean"] = torch.from_numpy(self.statistics.mean)
        tensors["bands.std"] = torch.from_numpy(self.statistics.std)
        tensors |= {f"frozen.{name}": t.cpu().contiguous() for name, t in self.frozen.items()}
        about = json.dumps(
            {"format": FORMAT, "net": self.net.settings, "training": self.training},
            sort_keys=True,
        )
        metadata = {"thonecls": about, "sha256": _digest(about, tensors)}
        write_atomically(Path(path), save_tensors(tensors, metadata))

    @staticmethod
    def load(path: str | os.PathLike[str]) -> Model:
        """Read what `save` wrote; refuse a damaged file and one of another version."""
        about, tensors = _read(Path(path))
        settings = about["net"]
        mean, std = (tensors.pop(f"bands.{name}").numpy() for name in ("mean", "std"))
        net = FreeOCNet(**settings)
        net.load_state_dict(_part(tensors, "net."))
        frozen = _part(tensors, "frozen.")
        return Model(net.eval(), BandStatistics(mean, std), frozen, about["training"])


def resolve_device(name: str) -> torch.device:
    """The torch device of a name; "auto" takes CUDA, then MPS, then the CPU."""
    if name != "auto":
        try:
            return torch.device(name)
        except RuntimeError as error:
            raise ConfigError(
                f"no device is called {name!r}: use auto, cpu, cuda or mps"
            ) from error
    if torch.cuda.is_available():
        return torch.device("cuda")
    return torch.device("mps" if torch.backends.mps.is_available() else "cpu")


def _tiles(length: int, tile: int) -> list[slice]:
    """Cuts of an axis at multiples of the network's stride."""
    step = max(1, -(-tile // STRIDE)) * STRIDE
    return [slice(start, min(start + step, length)) for start in range(0, length, step)]


def _with_halo(part: slice, length: int) -> slice:
    return slice(max(0, part.start - HALO), min(length, part.stop + HALO))


def _part(tensors: dict[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {k.removeprefix(prefix): t for k, t in tensors.items() if k.startswith(prefix)}


def _read(path: Path) -> tuple[dict[str, Any], dict[str, Tensor]]:
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ModelError(f"cannot read the model {path}: {error.strerror}") from error
    try:
        tensors = load_tensors(content)
        length = int.from_bytes(content[:8], "little")
        metadata = json.loads(content[8 : 8 + length]).get("__metadata__", {})
    except (safetensors.SafetensorError, ValueError) as error:
        raise ModelError(
            f"{path} is not a thonecls model, or is damaged ({error}): train again or copy it anew"
        ) from error
    if "thonecls" not in metadata:
        raise ModelError(f"{path} holds weights, but not those of a thonecls model")
    if metadata.get("sha256") != _digest(metadata["thonecls"], tensors):
        raise ModelError(f"{path} is damaged (its checksum differs): copy it anew or train again")
    about: dict[str, Any] = json.loads(metadata["thonecls"])
    if about.get("format") != FORMAT:
        raise ModelError(
            f"{path} has model format {about.get('format')}, this version reads {FORMAT}: "
            "use the version of thonecls that wrote it, or train again"
        )
    return about, tensors


def _digest(about: str, tensors: dict[str, Tensor]) -> str:
    digest = hashlib.sha256(about.encode())
    for name in sorted(tensors):
        digest.update(f"{name}{tuple(tensors[name].shape)}".encode())
        digest.update(tensors[name].contiguous().numpy().tobytes())
    return digest.hexdigest()
