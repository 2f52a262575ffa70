"""Whether a model's file holds a model: facts and arrays, each against its rule and the others."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from thonecls import schema
from thonecls.errors import ModelError
from thonecls.schema import Array, MismatchError, Rule, check_arrays, check_facts

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
        check_facts(about["training"], {"seed": schema.whole(0, 2**32 - 1)})
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
