"""Commands killed from outside at random moments, hundreds of times: `make crash`.

Each round kills one command and goes on: again, anew, with another scene or other
labels, with other options, or while another process is at it. What is there in the end equals an
uninterrupted run, or was refused and is unharmed; anything else is a failure.
"""

from __future__ import annotations

import argparse
import random
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch
from threadpoolctl import threadpool_limits

import thonecls.method.model
from crashing import World, ended, kill_after, make_world, outcome, start

Work = Callable[[Path], object]
FOLLOWS = ("again", "anew", "other input", "other options", "two at once")
COMMANDS = {"train": 2, "map": 5, "report": 1, "sample": 1, "benchmark": 2}  # how often, of all


class Rounds:
    """The commands, what uninterrupted runs of them give, and how long they take."""

    def __init__(self, world: World) -> None:
        here = world.here
        run = here / "run"
        world.train(run)
        train, maps = world.train, partial(world.map, run)
        # First what is killed, then what may follow it.
        self.works: dict[str, dict[str, Work]] = {
            "train": {
                "killed": lambda out: train(out, 1, overwrite=True),
                "again": lambda out: train(out, 1, resume=True),
                "anew": lambda out: train(out, 1, overwrite=True),
                "other input": lambda out: train(out, 0, resume=True),
                "other options": lambda out: train(out, 1, "matched-filter", resume=True),
            },
            "map": {
                "killed": lambda out: maps(out, resume=True),
                "again": lambda out: maps(out, resume=True),
                "anew": lambda out: maps(out, overwrite=True),
                "other input": lambda out: maps(out, 2021, resume=True),
                "other options": lambda out: maps(out, threshold=0.9, resume=True),
            },
            "report": {
                "killed": lambda out: world.report(out, truth=True),
                "again": lambda out: world.report(out, truth=True),
                "other options": lambda out: world.report(out, truth=False),
            },
            "sample": {"killed": world.sample, "again": world.sample},
            "benchmark": {"killed": world.benchmark, "again": world.benchmark},
        }
        self.bases = {"train": run, "report": run, "sample": run}
        self.expected: dict[str, dict[str, Any]] = {}
        self.seconds: dict[str, float] = {}
        for command, works in self.works.items():
            self.expected[command] = {}
            for name, work in works.items():
                out = here / "expected" / command / name
                self.prepare(command, out, fresh=name not in ("killed", "anew"))
                began = time.perf_counter()
                work(out)
                if name == "killed":
                    self.seconds[command] = time.perf_counter() - began
                self.expected[command][name] = outcome(out)

    def prepare(self, command: str, out: Path, *, fresh: bool = False) -> None:
        """What is in a folder before a command."""
        if out.exists():
            shutil.rmtree(out)
        if command in self.bases and not (fresh and command == "train"):
            shutil.copytree(self.bases[command], out)

    def play(self, command: str, follows: str, out: Path, rng: random.Random) -> str:
        """One round; in a word what came of it, with "failed" at its beginning if it did."""
        works, expected = self.works[command], self.expected[command]
        self.prepare(command, out)
        moment = rng.uniform(0, self.seconds[command])
        if follows == "two at once":
            other = start(partial(works.get("other input", works["again"]), out))
            kill_after(moment, partial(works["killed"], out))
            if ended(other) == 1:
                return "failed: the second of two"
        else:
            kill_after(moment, partial(works["killed"], out))
            said = ended(start(partial(works[follows], out)))
            if said == 1:
                return f"failed: an error that nobody foresaw, at {moment:.3f} s"
            if said == 0:
                same = outcome(out) == expected[follows]
                return "equal" if same else f"failed: another outcome, killed at {moment:.3f} s"
        if outcome(out) in expected.values():
            return "ended before"
        # Refused, or killed: what there is must still lead to one of the outcomes, as a whole.
        for name in ("again", "other input", "other options"):
            if name in works and ended(start(partial(works[name], out))) == 0:
                same = outcome(out) == expected[name]
                return "refused" if same else f"failed: another outcome, killed at {moment:.3f} s"
        return f"failed: nothing goes on, killed at {moment:.3f} s"


def main() -> int:
    """Play, and tell how often what came of it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    torch.set_num_threads(1)
    threadpool_limits(1)
    thonecls.method.model.MEMORY = 1  # several windows to a small map
    rng = random.Random(given.seed)
    told: Counter[tuple[str, str, str]] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        rounds = Rounds(make_world(Path(folder)))
        for _ in range(given.rounds):
            command = rng.choices([*COMMANDS], [*COMMANDS.values()])[0]
            known = [f for f in FOLLOWS if f in rounds.works[command] or f == "two at once"]
            follows = rng.choice(known)
            said = rounds.play(command, follows, Path(folder) / "round", rng)
            if said.startswith("failed"):
                print(f"{command}, then {follows}: {said}", flush=True)
            told[command, follows, said.split(":")[0]] += 1
    for (command, follows, said), count in sorted(told.items()):
        print(f"{command:10} {follows:14} {said:13} {count:4}")
    failures = sum(count for (*_, said), count in told.items() if said == "failed")
    print(f"{given.rounds} rounds, {failures} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
