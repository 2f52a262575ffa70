"""The state of a training run: all that the next step depends on, in checkpoints."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from thonecls import schema
from thonecls.errors import ModelError
from thonecls.method import store

LAYOUT = 3  # raise it when older checkpoints can no longer be gone on from


@dataclass(eq=False)
class State:
    """Networks, optimiser, and the place in the schedule.

    shuffle: the generator's state when the epoch began, from which its batches follow; sums: of
    the epoch's figures so far; history: their means by epoch; seconds: of training in all;
    memory: what a procedure keeps from step to step.
    """

    student: nn.Module
    teacher: nn.Module
    optimizer: torch.optim.Optimizer
    shuffle: Tensor
    sums: list[float]
    epoch: int = 0
    step: int = 0
    history: list[list[float]] = field(default_factory=list)
    seconds: float = 0.0
    memory: dict[str, Tensor] = field(default_factory=dict)


def _check(state: State, about: dict[str, Any], tensors: dict[str, Tensor]) -> None:
    """Refuse figures and tensors that are not those of this training."""
    if len(about["sums"]) != len(state.sums):
        raise schema.MismatchError(f"'sums' must be {len(state.sums)} numbers")
    if any(len(figures) != len(state.sums) for figures in about["history"]):
        raise schema.MismatchError(f"'history' must be {len(state.sums)} numbers an epoch")
    wanted = {"shuffle": state.shuffle}
    for name, network in (("student", state.student), ("teacher", state.teacher)):
        wanted |= store.prefixed(f"{name}.", network.state_dict())
    for name, parameter in state.student.named_parameters():
        for key in store.part(tensors, f"optimizer.{name}/"):
            wanted[f"optimizer.{name}/{key}"] = torch.zeros(()) if key == "step" else parameter
    kept = {k: t for k, t in tensors.items() if not k.startswith("memory.")}
    rules = {
        name: schema.Array(tuple(t.shape), "f" if t.dtype.is_floating_point else "iu")
        for name, t in wanted.items()
    }
    schema.check_arrays({name: t.numpy() for name, t in kept.items()}, rules)


class Checkpointer:
    """Saves a state every few seconds, and brings it back.

    fingerprint: of scene, labels and settings; a checkpoint of other training is refused.
    """

    def __init__(self, path: Path | None, fingerprint: str, every: float) -> None:
        self.path, self.fingerprint, self.every = path, fingerprint, every
        self.due = time.monotonic() + every

    def restore_(self, state: State) -> None:
        """Bring `state` to where the checkpoint was taken, if there is one."""
        if self.path is None or not self.path.exists():
            return
        about, tensors = store.load(self.path, "checkpoint")
        if about.get("layout") != LAYOUT:
            raise ModelError(
                f"{self.path} was begun by another version of thonecls: go on with that, or start "
                "again in another folder"
            )
        with store.refusing(self.path):
            schema.check_facts(about, schema.CHECKPOINT)
        if about["fingerprint"] != self.fingerprint:
            raise ModelError(
                f"{self.path} belongs to another training (other scene, labels or settings): "
                "repeat the command that began it, or start again in another folder"
            )
        with store.refusing(self.path):
            _check(state, about, tensors)
        state.student.load_state_dict(store.part(tensors, "student."))
        state.teacher.load_state_dict(store.part(tensors, "teacher."))
        for name, parameter in state.student.named_parameters():
            for key, kept in store.part(tensors, f"optimizer.{name}/").items():
                # Adam counts its steps on the CPU.
                device = kept.device if key == "step" else parameter.device
                state.optimizer.state[parameter][key] = kept.to(device)
        state.memory = store.part(tensors, "memory.")
        state.shuffle = tensors["shuffle"]
        state.epoch, state.step = about["epoch"], about["step"]
        state.sums, state.history = about["sums"], about["history"]
        state.seconds = about["seconds"]

    def keep(self, state: State, *, now: bool = False) -> None:
        """Save the state if it is time; a killed process loses no more than what came after."""
        if self.path is None or not (now or time.monotonic() >= self.due):
            return
        about = {
            "layout": LAYOUT,
            "fingerprint": self.fingerprint,
            "epoch": state.epoch,
            "step": state.step,
            "sums": state.sums,
            "history": state.history,
            "seconds": state.seconds,
        }
        optimizer = {
            f"{name}/{key}": value
            for name, parameter in state.student.named_parameters()
            for key, value in state.optimizer.state[parameter].items()
            if value is not None  # SGD without momentum has none
        }
        tensors = {
            **store.prefixed("student.", state.student.state_dict()),
            **store.prefixed("teacher.", state.teacher.state_dict()),
            **store.prefixed("optimizer.", optimizer),
            **store.prefixed("memory.", state.memory),
            "shuffle": state.shuffle,
        }
        # Not synced: a rename is enough against a killed process, and costs no waiting.
        store.save(self.path, "checkpoint", about, tensors, sync=False)
        self.due = time.monotonic() + self.every
