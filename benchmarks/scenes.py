"""Many scenes at once: a model of all tiles of a cut scene beside the model of the whole scene.

python benchmarks/scenes.py

Indian Pines is cut into 2 × 2 and 3 × 3 tiles. The labels are the same, scattered over the class;
tiles without a label serve as unlabeled. Each tile is mapped alone, as a file of its own would be,
and F1 is that of all tiles together. Prints one line for each class and cut, with the mean over the
seeds. --coverage all tells the method that labels come from all over, else it judges by itself.
"""

from __future__ import annotations

import argparse
import itertools

import numpy as np

from thonecls.datasets import Dataset, indian_pines
from thonecls.metrics import evaluate
from thonecls.mosaic import Window, lay_out
from thonecls.ratio.model import fit_ratio
from thonecls.splits import BoolArray, Coverage, resampled_split


def cut(shape: tuple[int, int], count: int) -> list[Window]:
    """A scene in count × count tiles of about the same size."""
    down, across = (np.linspace(0, length, count + 1).astype(int).tolist() for length in shape)
    rows, columns = (list(itertools.starmap(slice, itertools.pairwise(e))) for e in (down, across))
    return list(itertools.product(rows, columns))


def f1(
    data: Dataset, target: int, count: int, positives: int, seed: int, coverage: Coverage | None
) -> tuple[float, str]:
    """In percent, of the map from so many tiles a side; and where the labels are seen to lie."""
    split = resampled_split(data.truth, target, positives=positives, seed=seed)
    mask: BoolArray = np.zeros(data.scene.shape, dtype=bool)
    mask.flat[split.labels.positive] = True
    probability = np.full(mask.shape, np.nan, np.float32)
    if count == 1:
        model = fit_ratio(data.scene, mask, seed=seed, coverage=coverage)
        probability = model.score(data.scene)
    else:
        tiles = cut(mask.shape, count)
        mosaic = lay_out([data.scene.read(*tile) for tile in tiles])
        laid: BoolArray = np.zeros(mosaic.shape, dtype=bool)
        for tile, window in zip(tiles, mosaic.windows, strict=True):
            laid[window] = mask[tile]
        model = fit_ratio(mosaic, laid, seed=seed, coverage=coverage)
        for tile in tiles:
            probability[tile] = model.score(data.scene.read(*tile))
    scores = evaluate(probability, data.truth == target, split.test, threshold=model.threshold)
    return scores.f1, model.training["coverage"]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--classes", type=int, nargs="+", default=[10, 14])
    parser.add_argument("--cuts", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--positives", type=int, default=100)
    parser.add_argument("--coverage", choices=["all", "part", "patch"], default=None)
    asked = parser.parse_args()
    data = indian_pines()
    print("| class | scenes | F1 | against the whole | labels lie in |")
    print("|---|---|---|---|---|")
    for target in asked.classes:
        whole = None
        for count in asked.cuts:
            found = [
                f1(data, target, count, asked.positives, seed, asked.coverage)
                for seed in range(asked.seeds)
            ]
            mean = float(np.mean([score for score, _ in found]))
            whole = mean if whole is None else whole
            lie = ", ".join(coverage for _, coverage in found)
            one_by_one = ", ".join(f"{score:.1f}" for score, _ in found)
            print(
                f"| {data.classes[target]} | {count**2} | {mean:.1f} ({one_by_one}) | "
                f"{mean - whole:+.1f} | {lie} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
