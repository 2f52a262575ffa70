"""The state of a training run: all that the next step depends on, kept against sudden death."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path

import torch
from torch import Tensor

from thonecls import store
from thonecls.errors import ModelError
from thonecls.net import FreeOCNet

EVERY = 10.0  # seconds of training between two checkpoints


@dataclass(eq=False)
class State:
    """Networks, optimiser, and the place in the schedule.

    shuffle: the generator's state when the epoch began, from which its batches follow; sums: of
    the epoch's figures so far; history: their means by epoch; seconds: of training in all.
    """

    student: FreeOCNet
    teacher: FreeOCNet
    optimizer: torch.optim.SGD
    shuffle: Tensor
    sums: list[float]
    epoch: int = 0
    step: int = 0
    history: list[list[float]] = field(default_factory=list)
    seconds: float = 0.0


class Keeper:
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
        if about["fingerprint"] != self.fingerprint:
            raise ModelError(
                f"{self.path} belongs to another training (other scene, labels or settings): "
                "repeat the command that began it, or start anew in another folder"
            )
        state.student.load_state_dict(store.part(tensors, "student."))
        state.teacher.load_state_dict(store.part(tensors, "teacher."))
        momentum = store.part(tensors, "momentum.")
        for name, parameter in state.student.named_parameters():
            if name in momentum:  # SGD without momentum has none
                buffer = momentum[name].to(parameter.device)
                state.optimizer.state[parameter]["momentum_buffer"] = buffer
        state.shuffle = tensors["shuffle"]
        state.epoch, state.step = about["epoch"], about["step"]
        state.sums, state.history = about["sums"], about["history"]
        state.seconds = about["seconds"]

    def keep(self, state: State, *, now: bool = False) -> None:
        """Save the state if it is time; a killed process loses no more than what came after."""
        if self.path is None or not (now or time.monotonic() >= self.due):
            return
        about = {
            "fingerprint": self.fingerprint,
            "epoch": state.epoch,
            "step": state.step,
            "sums": state.sums,
            "history": state.history,
            "seconds": state.seconds,
        }
        momentum = {
            name: state.optimizer.state[p]["momentum_buffer"]
            for name, p in state.student.named_parameters()
            if state.optimizer.state[p].get("momentum_buffer") is not None
        }
        tensors = {
            **store.prefixed("student.", state.student.state_dict()),
            **store.prefixed("teacher.", state.teacher.state_dict()),
            **store.prefixed("momentum.", momentum),
            "shuffle": state.shuffle,
        }
        # Not synced: a rename is enough against a killed process, and costs no waiting.
        store.save(self.path, "checkpoint", about, tensors, sync=False)
        self.due = time.monotonic() + self.every
