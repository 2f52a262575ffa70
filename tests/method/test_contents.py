"""Models and checkpoints by strangers: refused before anything is built from them."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import safetensors.torch
import torch

import strange_models as models
from thonecls.errors import ModelError
from thonecls.method import store
from thonecls.method.checkpoint import LAYOUT, Checkpointer, State
from thonecls.methods.spectral_model import load_model
from thonecls.scene import as_scene
from thonecls.schema import Array, MismatchError, check_arrays, check_facts, number, text, whole


def refusal(path: Path) -> str | None:
    """What is said of a model's file, None where it is taken."""
    try:
        load_model(path)
    except ModelError as error:
        return str(error)
    return None


@pytest.mark.parametrize("kind", models.KINDS)
def test_a_model_with_anything_strange_in_it_is_refused_in_one_sentence(
    kind: str, tmp_path: Path
) -> None:
    base = models.contents(tmp_path / "base.safetensors", kind)
    cube = np.random.default_rng(0).normal(size=(models.BANDS, 20, 20))
    good = models.changed(tmp_path / "good.safetensors", kind, lambda *_: None, base)
    assert np.isfinite(load_model(good).score(as_scene(cube))).all()
    taken = []
    for name, change in models.strange(kind):
        path = models.changed(tmp_path / "m.safetensors", kind, change, base)
        if (words := refusal(path)) is None or len(words) > 1000:
            taken.append(name)
    assert taken == []


def test_a_model_that_asks_for_a_wide_network_takes_no_memory(tmp_path: Path) -> None:
    """174 kB of model with "width": 30 took 9.4 GB before its weights were looked at."""
    about, tensors = models.contents(tmp_path / "m.safetensors", "model")
    about["net"]["width"] = 15.0
    path = models.written(tmp_path / "m.safetensors", "model", about, tensors)
    script = (
        "import resource, sys\n"
        "from thonecls.errors import ModelError\n"
        "from thonecls.method.model import Model\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "try:\n    Model.load(sys.argv[1])\n"
        "except ModelError as error:\n    assert 'net.stem.weight' in str(error), error\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(path)], capture_output=True, text=True, check=True
    )
    scale = 1 if sys.platform == "darwin" else 1024
    assert int(done.stdout) * scale < 200e6


@pytest.mark.parametrize(
    "facts",
    [
        '"x"',
        "[]",
        "{}",
        '{"kind": "model"}',
        '{"kind": [], "format": 1}',
        '{"kind": "model", "format": "x"}',
        "[" * 100_000,
        "NaN",
        "",
    ],
)
def test_a_header_of_any_json_is_refused(facts: str, tmp_path: Path) -> None:
    tensors = {"weight": torch.zeros(3)}
    metadata = {"thonecls": facts, "sha256": store._digest(facts, tensors)}
    path = tmp_path / "m.safetensors"
    path.write_bytes(safetensors.torch.save(tensors, metadata))
    with pytest.raises(ModelError, match=r"train again|name a model's file"):
        load_model(path)


def test_weights_of_a_type_that_numpy_does_not_know_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "m.safetensors"
    path.write_bytes(
        safetensors.torch.save({"w": torch.zeros(3, dtype=torch.bfloat16)}, {"thonecls": "{}"})
    )
    with pytest.raises(ModelError, match=r"'w' is of torch.bfloat16"):
        load_model(path)


def state() -> State:
    torch.manual_seed(0)
    student, teacher = torch.nn.Linear(2, 1), torch.nn.Linear(2, 1)
    optimizer = torch.optim.AdamW(student.parameters())
    student(torch.ones(1, 2)).sum().backward()
    optimizer.step()
    return State(student, teacher, optimizer, torch.Generator().get_state(), [1.0, 2.0])


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("fingerprint", 3),
        ("epoch", -1),
        ("epoch", "x"),
        ("step", 1.5),
        ("sums", [1.0]),
        ("sums", "x"),
        ("history", [[1.0]]),
        ("history", {}),
        ("seconds", float("nan")),
        ("shuffle", torch.zeros(3, dtype=torch.uint8)),
        ("shuffle", torch.zeros(5056)),
        ("student.weight", torch.full((1, 2), torch.nan)),
        ("student.weight", torch.zeros(2, 2)),
        ("teacher.odd", torch.zeros(2)),
        ("optimizer.weight/exp_avg", torch.zeros(7)),
    ],
)
def test_a_checkpoint_with_anything_strange_in_it_is_refused(
    name: str, value: object, tmp_path: Path
) -> None:
    path = tmp_path / "checkpoint.safetensors"
    checkpointer = Checkpointer(path, "mine", 0)
    checkpointer.keep(state(), now=True)
    checkpointer.restore_(state())
    about, tensors = store.load(path, "checkpoint")
    assert about["layout"] == LAYOUT
    about = {k: v for k, v in about.items() if k not in ("kind", "format", "types")}
    if isinstance(value, torch.Tensor):
        tensors[name] = value
    else:
        about[name] = value
    store.save(path, "checkpoint", about, tensors)
    with pytest.raises(ModelError, match="train again"):
        checkpointer.restore_(state())


def test_what_has_no_end_is_refused_at_once(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe.safetensors"
    os.mkfifo(pipe)
    endless = tmp_path / "zero.safetensors"
    endless.symlink_to("/dev/zero")
    began = time.perf_counter()
    for path in (pipe, endless):
        with pytest.raises(ModelError, match="no file that ends"):
            load_model(path)
    assert time.perf_counter() - began < 5


def test_rules_speak_as_the_settings_do() -> None:
    rules = {"a": number(0, 1), "b": whole(1, 9), "c": text(3).optional}
    check_facts({"a": 0.5, "b": 3}, rules)
    for facts, words in (
        ({"a": 2, "b": 3}, "'a' must be a number from 0 to 1. Got 2 instead"),
        ({"a": 1}, "'b' is missing"),
        ({"a": 1, "b": True}, "'b' must be a whole number from 1 to 9. Got True instead"),
        ({"a": 1, "b": 1, "c": "long"}, "'c' must be a text of at most 3 characters"),
        ([], "facts with names are needed"),
    ):
        with pytest.raises(MismatchError) as found:
            check_facts(facts, rules)
        assert words in str(found.value)


def test_arrays_of_one_axis_name_have_one_length() -> None:
    rules = {"x": Array(("n", 2)), "y": Array(("n",), low=0, high=1, finite=False)}
    arrays = {"x": np.zeros((3, 2)), "y": np.array([0.0, np.nan, 1.0])}
    assert check_arrays(arrays, rules) == {"n": 3}
    for name, other in (
        ("x", np.zeros((3, 3))),
        ("x", np.zeros((4, 2))),
        ("x", np.zeros((3, 2), int)),
        ("x", np.full((3, 2), np.nan)),
        ("y", np.array([0.0, 2.0, np.nan])),
        ("y", np.array([0.0, np.inf, np.nan])),
    ):
        with pytest.raises(MismatchError, match="its array"):
            check_arrays(arrays | {name: other}, rules)
