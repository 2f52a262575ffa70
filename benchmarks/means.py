"""Mean F1 of every method over the tuning classes, by where labels come from, from the records.

    python benchmarks/means.py

Over the classes and seeds that all methods have a record of; then, for the density ratio, in how
many classes another method is more than a point better.
"""

from __future__ import annotations

from statistics import fmean

from published import RECORDS
from reproduce import PARTS, TUNING, cells
from thonecls.benchmark import Cell, read_results

OURS = "density-ratio"


def main() -> None:
    """Print a paragraph for each study."""
    results = read_results(RECORDS)
    for name in TUNING:
        found: dict[str, dict[tuple[str, int, int], float]] = {}
        for cell in cells(PARTS[name]):
            record = results.find(cell)
            if record is not None and record.done:
                found.setdefault(cell.method, {})[_task(cell)] = record.facts["scores"]["f1"]
        tasks = sorted(set.intersection(*(set(f1) for f1 in found.values())))
        means = {method: fmean(f1[task] for task in tasks) for method, f1 in found.items()}
        print(f"{name}, {len(tasks)} classes × seeds")
        for method, mean in sorted(means.items(), key=lambda item: -item[1]):
            print(f"  {method:18} {mean:.1f}")
        places = sorted({task[:2] for task in tasks})
        better = 0
        for place in places:
            here = [task for task in tasks if task[:2] == place]
            by_method = {m: fmean(f1[task] for task in here) for m, f1 in found.items()}
            better += max(by_method.values()) > by_method[OURS] + 1
        print(f"  another is more than a point better than {OURS} in {better} of {len(places)}")


def _task(cell: Cell) -> tuple[str, int, int]:
    return cell.dataset, cell.target, cell.seed


if __name__ == "__main__":
    main()
