"""What clicks are worth: a person with the truth at the studio, F1 against the number of clicks.

    python benchmarks/studio_user.py [--classes 2 11 14] [--rounds 4] [--seeds 1]
    python benchmarks/studio_user.py --render

Indian Pines, by the studio's own server. Ten clicks about one place, then rounds of ten: answers to
suggestions; or further clicks about the same place; or clicks anywhere on the class, as by one who
knows all of its places. F1 is over all pixels whose class is known and that were not clicked.

A session, one class, kind of clicks and seed, is a line in
benchmarks/records/reports/studio-user.jsonl when it has ended; one that is there already is not run
again. To measure anew, take its lines out.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from published import RECORDS
from studio import Client, studio
from thonecls.datasets import Dataset, indian_pines
from thonecls.version import commit

CLICKS = 10
FILE = RECORDS / "reports" / "studio-user.jsonl"
ARMS = ("suggestions", "about one place", "anywhere")


def wait(client: Client) -> dict[str, Any]:
    """The state, once nothing runs; an error where a training has failed."""
    while True:
        state = client.state()
        if all(job["state"] != "running" for job in state["jobs"]):
            if failed := [job["error"] for job in state["jobs"] if job["state"] != "done"]:
                raise RuntimeError(failed[0])
            return state
        time.sleep(0.2)


def click(client: Client, kind: str, flat: NDArray[np.int64], width: int, **more: str) -> None:
    pixels = [[int(p) // width, int(p) % width] for p in flat]
    if pixels:
        content = {"kind": kind, "pixels": pixels, **more}
        client.ask("POST", "/api/strokes", content)


def f1(client: Client, truth: NDArray[Any], target: int) -> float:
    """Of the map that is shown, at its cut."""
    state = wait(client)
    shown = next(m for m in state["maps"] if m["id"] == state["shown"])
    body = client.ask("GET", f"/api/tiles/map/{shown['id']}/0/0/0")
    octets = np.frombuffer(body, np.uint8).reshape(256, 256)[: truth.shape[0], : truth.shape[1]]
    labels = json.loads(client.ask("GET", "/api/labels"))
    tested = truth > 0
    for kind in ("positive", "negative", "unknown"):
        tested.flat[labels[kind]] = False
    mapped, of_class = (octets > 200 * shown["cut"]) & tested, (truth == target) & tested
    return float(200 * (mapped & of_class).sum() / max(1, mapped.sum() + of_class.sum()))


def answer_suggestions(client: Client, truth: NDArray[Any], target: int) -> None:
    asked = json.loads(client.ask("POST", "/api/suggestions", {"size": CLICKS}))
    for point in asked["points"]:
        found = truth[point["row"], point["column"]]
        kind = "unknown" if found == 0 else "positive" if found == target else "negative"
        flat = np.array([point["row"] * truth.shape[1] + point["column"]])
        click(client, kind, flat, truth.shape[1], origin="suggestion")


def session(
    client: Client, truth: NDArray[Any], target: int, arm: str, rounds: int, seed: int
) -> list[float]:
    """F1 after each round: the first map, then trainings."""
    rng = np.random.default_rng([seed, target])
    of_class = np.flatnonzero(truth == target)
    at = np.stack(np.divmod(of_class, truth.shape[1]), axis=1)
    start = at[rng.integers(len(at))]
    near = of_class[np.argsort(np.linalg.norm(at - start, axis=1), kind="stable")]
    place = rng.permutation(near[: 4 * CLICKS * (rounds + 1)])  # a few fields about the start
    far = rng.permutation(of_class)
    click(client, "positive", rng.permutation(near[: 4 * CLICKS])[:CLICKS], truth.shape[1])
    revision = client.state()["labels"]["revision"]
    while not any(m["revision"] == revision for m in client.state()["maps"]):
        time.sleep(0.05)
    found = [f1(client, truth, target)]
    for number in range(rounds + 1):
        if number and arm == "suggestions":
            answer_suggestions(client, truth, target)
        elif number:
            source = far if arm == "anywhere" else place
            some = source[CLICKS * (number - 1) : CLICKS * number]
            click(client, "positive", some, truth.shape[1])
        client.ask("POST", "/api/train", {})
        found.append(f1(client, truth, target))
    return found


def read() -> list[dict[str, Any]]:
    """All records."""
    if not FILE.exists():
        return []
    return [json.loads(line) for line in FILE.read_text("utf-8").splitlines()]


def run(classes: Sequence[int], rounds: int, seeds: int) -> None:
    """Measure what is not recorded."""
    known = [record["task"] for record in read()]
    tasks: list[dict[str, Any]] = [
        {"scene": "indian-pines", "target": target, "clicks": arm, "rounds": rounds, "seed": seed}
        for seed in range(seeds)
        for target in classes
        for arm in ARMS
    ]
    data = indian_pines()
    with tempfile.TemporaryDirectory() as folder:
        scene = Path(folder) / "indian-pines.npy"
        np.save(scene, data.scene.cube)
        for number, task in enumerate(tasks):
            if task in known:
                continue
            with studio(scene, Path(folder) / str(number), "--bands-axis", "first") as client:
                client.ask("PUT", "/api/settings", {"auto": False})
                began = time.monotonic()
                found = session(
                    client, data.truth, task["target"], task["clicks"], rounds, task["seed"]
                )
            record = {
                "task": task,
                "commit": commit(),
                "seconds": round(time.monotonic() - began, 1),
                "f1": found,
            }
            with FILE.open("a", encoding="utf-8") as file:
                file.write(json.dumps(record) + "\n")
            show(data, record)


def show(data: Dataset, record: dict[str, Any]) -> None:
    task = record["task"]
    name = f"{data.classes[task['target']]}, {task['clicks']}, seed {task['seed']}"
    print(name.ljust(44), *(f"{score:6.1f}" for score in record["f1"]), flush=True)


def render() -> None:
    """Print all records, and their means by kind of clicks."""
    data, records = indian_pines(), read()
    for rounds in sorted({record["task"]["rounds"] for record in records}):
        some = [record for record in records if record["task"]["rounds"] == rounds]
        clicks = [CLICKS, *(CLICKS * (n + 1) for n in range(rounds + 1))]
        print("clicks".ljust(44), *(f"{n:>6}" for n in clicks), "(the first column: the first map)")
        for record in some:
            show(data, record)
        for arm in ARMS:
            lines = [record["f1"] for record in some if record["task"]["clicks"] == arm]
            if lines:
                means = (f"{score:6.1f}" for score in np.mean(lines, axis=0))
                print(f"mean, {arm} (n = {len(lines)})".ljust(44), *means)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--classes", type=int, nargs="+", default=[2, 11, 14])
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--render", action="store_true")
    options = parser.parse_args()
    if not options.render:
        run(options.classes, options.rounds, options.seeds)
    render()


if __name__ == "__main__":
    main()
