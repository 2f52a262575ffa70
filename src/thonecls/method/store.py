"""Files of models and checkpoints: safetensors with JSON inside, a checksum, and rules."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import safetensors
import safetensors.torch
import torch
from torch import Tensor

from thonecls import schema
from thonecls.errors import ModelError
from thonecls.files import write_atomically
from thonecls.schema import Array, MismatchError, Rule, check_arrays, check_facts

MOST = 2**32  # bytes of a file
MOST_HEADER = 2**26  # bytes that are read of a header
TYPES = (torch.float32, torch.float64, torch.int64, torch.int32, torch.uint8, torch.bool)
HEADER = {"kind": schema.text(100), "format": schema.whole(0)}
FORMAT = 1  # raise it when what is written can no longer be read by older code


def save(
    path: Path, kind: str, about: dict[str, Any], tensors: dict[str, Tensor], *, sync: bool = True
) -> None:
    """Write tensors and JSON-ready facts, whole or not at all. The file holds no code."""
    ready = {name: t.detach().cpu().contiguous() for name, t in tensors.items()}
    known = {"kind": kind, "format": FORMAT, "types": _types(ready)}
    facts = json.dumps({**known, **about}, sort_keys=True)
    metadata = {"thonecls": facts, "sha256": _digest(facts, ready)}
    write_atomically(path, safetensors.torch.save(ready, metadata), sync=sync)


def kind_of(path: Path, expected: str) -> str | None:
    """What kind of file `save` wrote, by its header alone; None where it does not say."""
    _check_size(path, expected)
    try:
        with path.open("rb") as file:
            length = int.from_bytes(file.read(8), "little")
            header = json.loads(file.read(min(length, MOST_HEADER)))
        kind = json.loads(header["__metadata__"]["thonecls"])["kind"]
    except OSError as error:
        raise ModelError(
            f"cannot read the {expected} {path} ({error.strerror}): check the path"
        ) from error
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    return str(kind)[:100]


def _check_size(path: Path, kind: str) -> None:
    """Refuse what never ends, such as a device, and what is larger than any file of ours."""
    if path.exists() and not (path.is_file() or path.is_dir()):
        raise ModelError(f"{path} is no file that ends, such as a {kind}'s: name a {kind}'s file")
    if path.is_file() and path.stat().st_size > MOST:
        raise ModelError(f"{path} is larger than any {kind}, {MOST:,} bytes: name a {kind}'s file")


def load(path: Path, kind: str) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Read what `save` wrote; refuse a damaged file and one of another kind or version."""
    _check_size(path, kind)
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ModelError(
            f"cannot read the {kind} {path} ({error.strerror}): check the path"
        ) from error
    try:
        tensors = safetensors.torch.load(content)
        length = int.from_bytes(content[:8], "little")
        metadata = json.loads(content[8 : 8 + length]).get("__metadata__", {})
    except (safetensors.SafetensorError, ValueError, RecursionError, KeyError) as error:
        raise ModelError(
            f"{path} is not a thonecls {kind}, or is damaged ({error}): copy it again or train "
            "again"
        ) from error
    if "thonecls" not in metadata:
        raise ModelError(
            f"{path} holds weights, but not those of a thonecls {kind}: name the folder of a "
            "training, or a file in it"
        )
    if odd := [name for name, t in tensors.items() if t.dtype not in TYPES]:
        raise ModelError(
            f"{path} is not a thonecls {kind} (its array {odd[0][:80]!r} is of "
            f"{tensors[odd[0]].dtype}): copy it again or train again"
        )
    damaged = f"{path} is damaged (its checksum differs): copy it again or train again"
    if metadata.get("sha256") != _digest(metadata["thonecls"], tensors):
        raise ModelError(damaged)
    try:
        about: dict[str, Any] = json.loads(metadata["thonecls"])
    except (ValueError, RecursionError) as error:
        raise ModelError(f"{path} is not a thonecls {kind} ({error}): train again") from error
    with schema.refusing(ModelError, f"{path} is not a thonecls {kind}", "train again"):
        schema.check_facts(about, HEADER)
    if about.get("types", _types(tensors)) != _types(tensors):  # older files do not name them
        raise ModelError(damaged)
    if about["kind"] != kind:
        raise ModelError(
            f"{path} is a {about['kind']}, where a {kind} is needed: name a {kind}'s file"
        )
    if about["format"] != FORMAT:
        raise ModelError(
            f"{path} has {kind} format {about['format']}, this version reads {FORMAT}: "
            "use the version of thonecls that wrote it, or train again"
        )
    return about, tensors


def part(tensors: dict[str, Tensor], prefix: str) -> dict[str, Tensor]:
    """Those tensors whose names begin with the prefix, without it."""
    return {k.removeprefix(prefix): t for k, t in tensors.items() if k.startswith(prefix)}


def prefixed(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """The inverse of `part`."""
    return {f"{prefix}{name}": t for name, t in tensors.items()}


def _types(tensors: dict[str, Tensor]) -> str:
    """What the bytes of the tensors stand for, which their digest does not tell."""
    return " ".join(str(tensors[name].dtype) for name in sorted(tensors))


def _digest(about: str, tensors: dict[str, Tensor]) -> str:
    digest = hashlib.sha256(about.encode())
    for name in sorted(tensors):
        digest.update(f"{name}{tuple(tensors[name].shape)}".encode())
        digest.update(tensors[name].numpy().data)
    return digest.hexdigest()


Shapes = Mapping[str, tuple[int, ...]]
STEP = "copy it again or train again"


def check_network(
    path: Path, about: Mapping[str, Any], tensors: Mapping[str, Tensor], networks: Iterable[str]
) -> int:
    """Of how many channels the networks of a file are, if all but their own tensors is right.

    networks: what the names of their tensors begin with.
    """
    with refusing(path):
        _check_about(about, schema.NETWORK)
        check_facts(about["net"], schema.NET)
        if odd := about["net"].keys() - schema.NET.keys():
            raise MismatchError(f"a network has no setting {sorted(odd)[0][:80]!r}")
        rest = {k: t for k, t in tensors.items() if not k.startswith(tuple(networks))}
        sizes = _check_bands(about, rest)
        channels = sizes.get("components", sizes["bands"])
        if about["net"]["bands"] != channels:
            raise MismatchError(
                f"its network takes {about['net']['bands']} channels, its bands make {channels}"
            )
    return channels


def check_weights(
    path: Path, tensors: Mapping[str, Tensor], weights: Shapes, norms: Shapes, gates: Shapes
) -> None:
    """Refuse tensors that are not those of a network: its weights, and what its parts froze."""
    rules = {f"net.{name}": Array(shape) for name, shape in weights.items()}
    rules |= {f"frozen.{name}": Array(shape) for name, shape in norms.items()}
    rules |= {f"frozen.{name}": Array(shape, low=0, high=1) for name, shape in gates.items()}
    with refusing(path):
        arrays = _arrays(tensors)
        check_arrays(arrays, rules)
        for name in norms:
            if (arrays[f"frozen.{name}"][1] < 0).any():
                raise MismatchError(f"the variance that '{name}' froze must be 0 or more")


def check_ratio(
    path: Path, about: Mapping[str, Any], tensors: Mapping[str, Tensor], widest: int
) -> None:
    """Refuse what is no density ratio; widest: the largest window that a machine may look at."""
    machine = {
        "windows": schema.listed(
            Rule(
                f"an odd number from 1 to {widest}",
                lambda v: schema.whole(1, widest).holds(v) and v % 2 == 1,
            ),
            10,
        ),
        "power": schema.number(0, 4),
        "gamma": schema.number(0, 1e6, above=True),
    }
    with refusing(path):
        _check_about(about, schema.RATIO)
        rest = {k: t for k, t in tensors.items() if not k.startswith("machine.")}
        sizes = _check_bands(about, rest)
        if "components" not in sizes:
            raise MismatchError("its array 'bands.axes' is missing")
        if not np.linalg.norm(tensors["bands.axes"].numpy(), axis=1).min() > 0:
            raise MismatchError("an axis of its bands has no length")
        rules = {}
        for i, facts in enumerate(about["machines"]):
            check_facts(facts, machine)
            seen = len(facts["windows"]) * sizes["components"]
            rules[f"machine.{i}.centres"] = Array((f"centres {i}", seen))
            rules[f"machine.{i}.weights"] = Array((f"centres {i}",))
        if not (rules and all(facts["windows"] for facts in about["machines"])):
            raise MismatchError("'machines' must name a machine with a window")
        parts = {k: t for k, t in tensors.items() if k.startswith("machine.")}
        check_arrays(_arrays(parts), rules)


def check_spectral(path: Path, about: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> None:
    """Refuse what is no method on single spectra with its samples."""
    with refusing(path):
        _check_about(about, schema.SPECTRAL)
        check_facts(about["training"], {"seed": schema.whole(0, 2**62 - 1)})
        rest = {k: t for k, t in tensors.items() if not k.startswith("samples.")}
        sizes = _check_bands(about, rest)
        samples = {
            k.removeprefix("samples."): t for k, t in tensors.items() if k.startswith("samples.")
        }
        found = check_arrays(_arrays(samples), schema.SAMPLES, {"bands": sizes["bands"]})
        for kind in ("positives", "others"):
            if not 1 <= found[kind] <= schema.MOST_LIST:
                raise MismatchError(
                    f"it must have 1 to {schema.MOST_LIST:,} {kind}. Got {found[kind]}"
                )


def refusing(path: Path) -> Any:
    """A mismatch as the error of a model's file."""
    return schema.refusing(ModelError, f"{path} holds no model that can be used", STEP)


def _check_about(about: Mapping[str, Any], rules: Mapping[str, Rule]) -> None:
    check_facts(about, rules)
    check_facts(about["training"], schema.TRAINING)


def _check_bands(about: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> dict[str, int]:
    """Statistics of the bands, wavelengths and what is usual; the lengths of their axes."""
    rules = {f"bands.{name}": rule for name, rule in schema.BANDS.items()}
    if "usual" in about:
        rules |= {f"novelty.{name}": rule for name, rule in schema.NOVELTY.items()}
    sizes = check_arrays(_arrays(tensors), rules)
    if not 2 <= sizes["bands"] <= schema.MOST_BANDS:
        raise MismatchError(f"it must have 2 to {schema.MOST_BANDS:,} bands. Got {sizes['bands']}")
    waves = about.get("wavelengths")
    if waves is not None and len(waves) != sizes["bands"]:
        raise MismatchError(f"it names {len(waves)} wavelengths of {sizes['bands']} bands")
    if "usual" in about and sizes["scales"] != sizes["directions"] + 1:
        raise MismatchError("what it takes for usual has not one scale for each direction")
    if not all(sizes.values()):
        raise MismatchError("an array of it is empty")
    return sizes


def _arrays(tensors: Mapping[str, Tensor]) -> dict[str, Any]:
    return {name: tensor.numpy() for name, tensor in tensors.items()}
