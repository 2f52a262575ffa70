"""One safetensors file with JSON inside and a checksum: how models and checkpoints are kept."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import safetensors
import safetensors.torch
import torch
from torch import Tensor

from thonecls import schema
from thonecls.errors import ModelError
from thonecls.files import write_atomically

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
