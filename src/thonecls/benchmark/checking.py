"""Record files checked before they are merged: their schema, and what no schema can tell."""

from __future__ import annotations

import json
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

from thonecls.benchmark.plan import cell_of
from thonecls.benchmark.records import Results, is_foreign, lines_of, read_results
from thonecls.benchmark.targets import check_place, known_places
from thonecls.errors import ConfigError, ThoneclsError
from thonecls.extras import need
from thonecls.methods import METHODS
from thonecls.splits import PROTOCOLS

ROUNDED = 0.02  # percent by which F1 may differ from what precision and recall say


def record_schema() -> dict[str, Any]:
    """The JSON schema (draft 2020-12) of a line of a record file."""
    text = (files("thonecls.benchmark") / "record.schema.json").read_text("utf-8")
    schema: dict[str, Any] = json.loads(text)
    return schema


def check_records(folder: Path) -> list[str]:
    """Whatever is wrong with the record files of a folder: a line each, with file and number.

    Every line must keep to the schema. Beyond it: methods and scenes are known or described by a
    card of their own, classes are there, F1 follows from precision and recall, and no cell is done
    in two files.
    """
    known = read_results(folder)
    checks = _validators()
    wrong: list[str] = []
    done: dict[str, tuple[Path, int]] = {}
    for path, number, line in lines_of(folder):
        where = f"{path}, line {number}"
        try:
            facts = json.loads(line)
        except ValueError as error:
            wrong.append(f"{where}: not JSON ({error})")
            continue
        found = list(_against_schema(facts, checks))
        if not found:
            found = list(_beyond_schema(facts, known))
        if not found and "scores" in facts:
            key = json.dumps(facts["cell"], sort_keys=True)
            first = done.setdefault(key, (path, number))
            if first[0] != path:
                found = [f"the cell is already done in {first[0]}, line {first[1]}: keep one"]
        wrong += [f"{where}: {what}" for what in found]
    return wrong


def _validators() -> dict[str, Any]:
    """What checks a record, and either kind of card."""
    jsonschema = need("jsonschema", "checking records")
    schema = record_schema()
    return {
        kind: jsonschema.Draft202012Validator({"$defs": schema["$defs"], "$ref": f"#/$defs/{kind}"})
        for kind in ("record", "method", "scene")
    }


def _against_schema(facts: Any, checks: dict[str, Any]) -> Iterator[str]:
    kind = next((k for k in ("method", "scene") if isinstance(facts, dict) and k in facts), None)
    if kind is not None and len(facts) > 1:
        yield f"a line with the card of a {kind} holds nothing else"
        return
    content = facts[kind] if kind else facts
    for error in checks[kind or "record"].iter_errors(content):
        place = ".".join(map(str, ([kind] if kind else []) + list(error.absolute_path)))
        if error.validator == "anyOf":
            yield "a record has 'scores', or an 'error' that says why it has none"
        else:
            yield f"{place}: {error.message}" if place else error.message


def _beyond_schema(facts: dict[str, Any], known: Results) -> Iterator[str]:
    if "method" in facts:
        name = facts["method"]["name"]
        if name in METHODS:
            yield f"thonecls has a method {name!r} itself: give yours another name"
        return
    if "scene" in facts:
        return
    try:
        _check_cell(facts["cell"], known)
    except (ThoneclsError, TypeError) as error:
        yield f"cell: {error}"
    scores = facts.get("scores")
    if scores is not None:
        precision, recall = scores["precision"], scores["recall"]
        f1 = 2 * precision * recall / (precision + recall) if precision + recall else 0.0
        if abs(f1 - scores["f1"]) > ROUNDED:
            yield f"scores.f1: {scores['f1']} is not what precision and recall give, {f1:.2f}"


def _check_cell(cell: dict[str, Any], known: Results) -> None:
    """Refuse what is neither in the catalogues nor described by a card."""
    if cell["dataset"] not in known.scenes and cell["dataset"] not in known_places():
        raise ConfigError(
            f"there is no dataset {cell['dataset']!r}, nor a card of it in these files"
        )
    if not is_foreign(cell, known):
        found = cell_of(cell)
        check_place((found.dataset, found.target))
        return
    scene, method = known.scenes.get(cell["dataset"]), cell.get("method", "t-honecls")
    if scene is None:
        check_place((cell["dataset"], cell["target"]))
    elif cell["target"] not in scene.classes:
        raise ConfigError(f"{scene.name} has no class {cell['target']} on its card")
    if method not in known.methods and method not in METHODS:
        raise ConfigError(f"there is no method {method!r}, nor a card of it in these files")
    if cell.get("protocol", "paper") not in PROTOCOLS:
        raise ConfigError(f"'protocol' is one of {', '.join(PROTOCOLS)}")
