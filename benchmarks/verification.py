"""Whether intervals from sixty checked points hold the truth, by draws from maps of known truth.

    python benchmarks/verification.py --data-root SCENES [--draws 1000]

Maps by the density ratio from labels that are scattered, from a half and from a plot, of the pixels
whose class is known. Each draw samples sixty points as `thonecls sample` does, answers them by the
truth, and looks whether the intervals of precision, recall and area hold what is true of the map.
Beside them the normal intervals of Olofsson et al. (2014), from the same answers.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from published import insert
from reproduce import SMALL
from thonecls.benchmark.studies import BOARD
from thonecls.datasets import Dataset, load_dataset
from thonecls.errors import LabelError
from thonecls.ratio.model import fit_ratio
from thonecls.splits import PROTOCOLS
from thonecls.trust import STRATA, draw_points, stratify, verify

SIZE = 60
NAMES = ("precision", "recall", "area")
LABELS = {"scattered": "resampled", "half": "half", "plot": "plot"}


def normal(
    strata: NDArray[np.int64], present: NDArray[np.float64], pixels: NDArray[np.int64]
) -> list[tuple[float, float]]:
    """Normal intervals of precision, recall and area by the stratified estimators."""
    mapped = np.array([stratum.mapped for stratum in STRATA])
    tried = np.bincount(strata, minlength=len(STRATA))
    share = np.bincount(strata, present, len(STRATA)) / np.maximum(tried, 1)
    size = pixels.astype(np.float64)
    variance = size**2 * share * (1 - share) / np.maximum(tried - 1, 1)
    hits, total = (size * share)[mapped].sum(), max((size * share).sum(), 1e-9)
    recall = hits / total
    of_recall = (1 - recall) ** 2 * variance[mapped].sum() + recall**2 * variance[~mapped].sum()
    points = (hits / size[mapped].sum(), recall, total / size.sum())
    errors = (
        np.sqrt(variance[mapped].sum()) / size[mapped].sum(),
        np.sqrt(of_recall) / total,
        np.sqrt(variance.sum()) / size.sum(),
    )
    return [(at - 1.96 * e, at + 1.96 * e) for at, e in zip(points, errors, strict=True)]


def measure(data: Dataset, target: int, protocol: str, draws: int) -> NDArray[np.float64]:
    """How often ours and the normal intervals hold: (2, 3) in percent."""
    split = PROTOCOLS[protocol](data.truth, target, valid=data.scene.valid, seed=0)
    probability = fit_ratio(data.scene, split.labels).score(data.scene)
    known = (data.truth != 0) & data.scene.valid
    of_class = (data.truth == target).ravel()
    told = np.where(known, probability, np.nan)
    mapped = told > 0.5
    strata = stratify(told, mapped, 0.5).ravel()
    marked = mapped.ravel()
    inside = strata >= 0
    hits = (of_class & marked & inside).sum()
    truth = hits / marked[inside].sum(), hits / of_class[inside].sum(), of_class[inside].mean()
    held, rng = np.zeros((2, 3)), np.random.default_rng(0)
    for _ in range(draws):
        points, pixels = draw_points(strata, SIZE, rng)
        kinds, present = strata[points].astype(np.int64), of_class[points].astype(np.float64)
        found = verify(kinds, present, pixels, rng=rng)
        ours = [(getattr(found, n).low or 0.0, getattr(found, n).high or 0.0) for n in NAMES]
        for i, intervals in enumerate((ours, normal(kinds, present, pixels))):
            for j, (low, high) in enumerate(intervals):
                held[i, j] += low - 1e-9 <= truth[j] <= high + 1e-9
    return 100 * held / draws


def row(name: str, found: list[NDArray[np.float64]]) -> str:
    """A line of the table: means over maps; of ours also the lowest and the highest."""
    mean, low, high = (of(np.stack(found), axis=0) for of in (np.mean, np.min, np.max))
    ours = [
        f"{m:.1f} ({a:.0f} to {b:.0f})" for m, a, b in zip(mean[0], low[0], high[0], strict=True)
    ]
    return f"| {name} | {len(found)} | {' | '.join([*ours, *(f'{m:.1f}' for m in mean[1])])} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data-root", type=Path)
    parser.add_argument("--draws", type=int, default=1000)
    options = parser.parse_args()
    lines = [
        "| labels | maps | precision | recall | area | normal: precision | recall | area |",
        "|---|---|---|---|---|---|---|---|",
    ]
    datasets = {name: load_dataset(name, options.data_root) for name in SMALL}
    everything = []
    for labels, protocol in LABELS.items():
        found = []
        for name, target in BOARD:
            if name not in SMALL:
                continue
            try:
                found.append(measure(datasets[name], target, protocol, options.draws))
            except LabelError as error:  # the class is too small for this way of labelling
                print(f"{name} {target}, {labels}: {error}", flush=True)
                continue
            print(f"{name} {target}, {labels}: {found[-1].round(1).tolist()}", flush=True)
        everything += found
        lines.append(row(labels, found))
    note = (
        f"Percent of {options.draws:,} draws of {SIZE} points: mean over maps (lowest to highest)."
    )
    lines += [row("all", everything), "", note]
    insert(Path("docs/results.md"), "verification", "\n".join(lines))
    print("\n".join(lines))


if __name__ == "__main__":
    main()
