"""What a step of training sees by default: a collage of small blocks of the scene.

Blocks around some of the positives and blocks from anywhere, turned and mirrored, are laid side by
side in random order, anew at every step. What lies beyond a block says nothing, so a network learns
the class and not the place; and a step costs the same whatever the size of the scene.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from thonecls.errors import LabelError, SceneError
from thonecls.parallel import threaded
from thonecls.scene import (
    BandStatistics,
    BoolArray,
    FloatArray,
    Scene,
    Source,
    pooled_statistics,
    principal_axes,
    project,
    standardize,
)

WHOLE = 2**21  # pixels: a scene up to this size is held in memory, as components
PLACES = 1024  # random windows that stand for a larger scene; as many around labels at most
WINDOW = 2  # blocks a side of such a window, so that blocks can lie in it in many ways
SHARED = 64  # pixels: labels within a quarter of it share a window that is as large as they need
MEASURED = 2**18  # pixels of random windows that the bands of a large scene are measured on
SAMPLED = 50_000  # pixels that the principal components are measured on
STRIP = 2**18  # pixels read at a time
TRIES = 200  # places looked at before it is judged whether data are rare
RARE = 20  # of so many places one has data: if fewer have, the scene is searched for them
# Whether rows and columns of a block change places, and whether either then runs backwards.
_WAYS = [(way % 2 == 1, way % 4 in (1, 2), 2 <= way <= 5) for way in range(8)]
IntArray = NDArray[np.int64]
Window = tuple[slice, slice]
Axes = Callable[[FloatArray, int], FloatArray]  # of z-scored spectra (n, C), so many: (k, C)


class Part(NamedTuple):
    """A window of the scene as a network takes it: features (k, h, w) and valid (h, w).

    In memory the features of a pixel lie side by side: convolutions take less time so, and a row
    of a block is one piece.
    """

    features: FloatArray
    valid: BoolArray


class Collage(NamedTuple):
    """One canvas: cube (k, H, W), channels last in memory, and what a step may use of it.

    fair: (H, W), the valid pixels of the random blocks, which stand for the scene as it is;
    positive, unlabeled: flat indices; unlabeled are the fair pixels, but for a margin.
    """

    cube: FloatArray
    fair: BoolArray
    positive: IntArray
    unlabeled: IntArray


@dataclass(frozen=True, eq=False)
class Pool:
    """The parts of a scene that blocks are cut from.

    labels: (n, 3), part, row and column of every positive, and pixels: (n,) where it lies in the
    scene; places: of each part the flat indices of pixels that random blocks may be cut around,
    none of windows around labels; corners: (parts, 2), the first row and column of each part.
    """

    parts: list[Part]
    labels: IntArray
    pixels: IntArray
    places: list[IntArray]
    statistics: BandStatistics
    corners: IntArray

    def only(self, positives: IntArray) -> Pool:
        """The pool with some of its positives, by their number."""
        return replace(self, labels=self.labels[positives], pixels=self.pixels[positives])

    def cut(
        self,
        positives: IntArray,
        random_blocks: int,
        block: int,
        rng: np.random.Generator,
        *,
        margin: int = 0,
        gain: float = 0.0,
    ) -> Collage:
        """A canvas of blocks around these positives and of random blocks, in random order.

        positives: indices into `labels`. Random blocks are added until the canvas is full. margin:
        how far from the edge of their block positives lie, where the scene allows it, and
        unlabeled pixels; gain: the spread of a random factor on each block, about 1.
        """
        count = len(positives) + random_blocks
        columns = math.ceil(math.sqrt(count))
        rows = -(-count // columns)
        places = np.concatenate(
            [self.labels[positives], self._anywhere(rows * columns - len(positives), rng)]
        )
        order = rng.permutation(len(places))
        width = block - 2 * margin
        draws = rng.integers(np.tile([width, width, 8], len(places))).reshape(-1, 3)
        factors = 1 + gain * rng.standard_normal(len(places), dtype=np.float32)
        shapes = np.array([self.parts[part].valid.shape for part in places[:, 0]])
        # A block holds its pixel at a random place, and lies inside its part if it can.
        room = np.maximum(0, shapes[order] - block)
        corners = np.clip(places[order, 1:] - margin - draws[:, :2], 0, room)
        cube = np.empty((rows * block, columns * block, self.statistics.channels), np.float32)
        fair = np.zeros(cube.shape[:2], dtype=bool)
        positive = np.empty(len(positives), dtype=np.int64)
        for cell, (i, (top, left), way) in enumerate(
            zip(order.tolist(), corners.tolist(), draws[:, 2].tolist(), strict=True)
        ):
            part, row, column = places[i].tolist()
            features, valid = self.parts[part]
            down, across = (block * number for number in divmod(cell, columns))
            here = slice(down, down + block), slice(across, across + block)
            window = slice(top, top + block), slice(left, left + block)
            piece = _turn(_fill(features.transpose(1, 2, 0)[window], block), way)
            np.multiply(piece, factors[cell], out=cube[here])
            if i < len(positives):
                at = _turned(row - top, column - left, block, way)
                positive[i] = (down + at[0]) * cube.shape[1] + across + at[1]
            else:
                fair[here] = _turn(_fill(valid[window], block), way)
        place = np.arange(block)
        inner = (place >= margin) & (place < block - margin)
        central = np.tile(inner, rows)[:, None] & np.tile(inner, columns)
        return Collage(cube.transpose(2, 0, 1), fair, positive, np.flatnonzero(fair & central))

    def _anywhere(self, count: int, rng: np.random.Generator) -> IntArray:
        """Part, row and column of valid pixels, uniform over the places: (count, 3)."""
        ends = np.cumsum([len(pixels) for pixels in self.places])
        drawn = np.empty((count, 3), dtype=np.int64)
        for i, number in enumerate(rng.integers(ends[-1], size=count).tolist()):
            part = int(np.searchsorted(ends, number, side="right"))
            at = int(self.places[part][number - int(ends[part])])  # counted from the end
            drawn[i] = part, *divmod(at, self.parts[part].valid.shape[1])
        return drawn


def build_pool(
    source: Source,
    positive: IntArray,
    *,
    side: int | tuple[int, int],
    components: int,
    rng: np.random.Generator,
    axes: Axes = principal_axes,
    whole: int | None = None,
    windows: int | None = None,
    margin: int = 0,
    others: IntArray | None = None,
    about: int = 0,
) -> Pool:
    """The whole scene as components, or, of a large one, windows that stand for it.

    positive: flat indices into the source; those on nodata are left out. components: 0 keeps the
    bands as they are. axes: what the components are; whole: pixels of a scene that is held whole;
    windows: how many stand for a larger one (`WHOLE`, `PLACES`); side: of these, or both sides;
    margin: how far from a window's edge random places lie, unless it is the scene's. others: pixels
    that are held as positives are, if there are windows left for them; about: how many pixels
    around labels their windows hold, else they have the same side.
    """
    windows = windows or PLACES
    others = np.empty(0, np.int64) if others is None else others
    if source.shape[0] * source.shape[1] <= (whole or WHOLE):
        strips = _strips(source.shape)
        read = (source.read(*strip) for strip in strips)
        statistics = _measure(read, components, rng, axes)
        parts = [_take(source.read(*strip), statistics) for strip in strips]
        features = np.concatenate([part.features.transpose(1, 2, 0) for part in parts])
        entire = Part(features.transpose(2, 0, 1), np.concatenate([part.valid for part in parts]))
        pixels = np.union1d(positive, others) if others.size else positive
        rows, columns = np.unravel_index(pixels, source.shape)
        labels = np.stack([np.zeros_like(rows), rows, columns], axis=1)
        return _pool([], [entire], labels, pixels, statistics, np.zeros((1, 2), np.int64))
    sides = np.broadcast_to(side, 2)
    wide = SHARED if about else int(sides.max())
    around, labels, pixels = cover(positive, source.shape, wide, rng, windows, about)
    if others.size:
        more = cover(others, source.shape, wide, rng, windows // 2, about)
        labels = np.concatenate([labels, more[1] + [len(around), 0, 0]])
        around, pixels = around + more[0], np.concatenate([pixels, more[2]])
    measured = max(1, MEASURED // int(sides.prod()))
    scenes = random_scenes(source, sides, rng, windows, batch=measured)
    first = list(itertools.islice(scenes, measured))
    statistics = _measure((scene for _, scene in first), components, rng, axes)
    far, at = [], list(around)
    with threadpool_limits(1, user_api="blas"):  # other threads are reading
        near = [_take(scene, statistics) for scene in _read(source, around)]
        for window, scene in itertools.chain(first, scenes):
            far.append(_take(scene, statistics))
            at.append(window)
    corners = np.array([[rows.start, columns.start] for rows, columns in at], np.int64)
    pool = _pool(near, far, labels, pixels, statistics, corners)
    if not margin:
        return pool
    inner = _inner(pool, source.shape, margin)
    return replace(pool, places=inner if sum(map(len, inner)) else pool.places)


def _inner(pool: Pool, shape: tuple[int, int], margin: int) -> list[IntArray]:
    """Of each part the places that lie so far from its edges, unless it is as long as the scene."""
    found = []
    for part, places in zip(pool.parts, pool.places, strict=True):
        at = np.stack(np.divmod(places, part.valid.shape[1]), axis=1)
        size, cut = np.array(part.valid.shape), np.array(part.valid.shape) < np.array(shape)
        inside = (at >= margin) & (at < size - margin)
        found.append(places[(inside | ~cut).all(axis=1)])
    return found


def _pool(
    near: list[Part],
    far: list[Part],
    labels: IntArray,
    pixels: IntArray,
    statistics: BandStatistics,
    corners: IntArray,
) -> Pool:
    """Parts around labels and parts that random blocks come from; labels on nodata are left out."""
    parts = [*near, *far]
    known = np.array([parts[part].valid[row, column] for part, row, column in labels], dtype=bool)
    if not known.any():
        raise LabelError("no label lies on a valid pixel: check the labels and the nodata value")
    places = [np.empty(0, dtype=np.int64)] * len(near)
    places += [np.flatnonzero(part.valid) for part in far]
    return Pool(parts, labels[known], pixels[known], places, statistics, corners)


def _measure(
    scenes: Iterable[Scene], components: int, rng: np.random.Generator, axes: Axes
) -> BandStatistics:
    """Mean and spread of every band, and the principal components of a sample of the pixels."""
    sample: list[Scene] = []

    def sampled() -> Iterator[Scene]:
        for scene in scenes:
            pixels = np.flatnonzero(scene.valid)
            # As many of every pixel: a scene of one strip or window gives all of the sample.
            wanted = min(pixels.size, math.ceil(SAMPLED * scene.valid.size / MEASURED))
            sample.append(scene.pick(np.sort(rng.choice(pixels, wanted, replace=False))))
            yield scene

    statistics = pooled_statistics(sampled())
    if not 0 < components < len(statistics.mean) and axes is principal_axes:
        return statistics  # as many as there are bands: turning them would add nothing
    spectra = np.concatenate([standardize(part, statistics)[:, 0].T for part in sample])
    if len(spectra) > SAMPLED:
        spectra = spectra[rng.choice(len(spectra), SAMPLED, replace=False)]
    return replace(statistics, axes=axes(spectra, components))


def _take(scene: Scene, statistics: BandStatistics) -> Part:
    """A window as a network takes it."""
    features = project(standardize(scene, statistics), statistics)
    pixels = np.ascontiguousarray(features.transpose(1, 2, 0))
    return Part(pixels.transpose(2, 0, 1), scene.valid.copy())


def _strips(shape: tuple[int, int]) -> list[Window]:
    """A scene cut by rows into strips of about `STRIP` pixels."""
    step = max(1, STRIP // shape[1])
    starts = range(0, shape[0], step)
    return [(slice(at, min(at + step, shape[0])), slice(0, shape[1])) for at in starts]


def cover(
    positive: IntArray,
    shape: tuple[int, int],
    side: int,
    rng: np.random.Generator,
    most: int,
    about: int = 0,
) -> tuple[list[Window], IntArray, IntArray]:
    """Windows around labels; window, row and column of every label in them; its flat index.

    Each window is centred on a label that is still outside and takes in those within a quarter of
    its side. Where labels need more than `most` windows, a random part of them is used. about:
    then a window is not `side` pixels wide, but holds so many around each of its labels.
    """
    pairs = np.stack(np.unravel_index(rng.permutation(positive), shape), axis=1)
    windows: list[Window] = []
    labels = []
    while len(pairs) and len(windows) < most:
        near = (np.abs(pairs - pairs[0]) <= side // 4).all(axis=1)
        window = _around(pairs[near], about, shape) if about else _window(pairs[0], side, shape)
        corner = [part.start for part in window]
        number = np.full((int(near.sum()), 1), len(windows))
        labels.append(np.concatenate([number, pairs[near] - corner], axis=1))
        windows.append(window)
        pairs = pairs[~near]
    found = np.concatenate(labels)
    corners = np.array([[rows.start, columns.start] for rows, columns in windows])
    at = found[:, 1:] + corners[found[:, 0]]
    return windows, found, at[:, 0] * shape[1] + at[:, 1]


def random_scenes(
    source: Source,
    side: int | IntArray,
    rng: np.random.Generator,
    windows: int,
    batch: int | None = None,
) -> Iterator[tuple[Window, Scene]]:
    """So many windows about random places, and what is in them; where all is nodata, another.

    If hardly any place has data, the scene is searched, and places are drawn among valid pixels.
    batch: of so many windows the places are drawn before the first of them is read, of all unless
    told; no place of the next batch is drawn before the last of one is used.
    """
    found = tried = 0
    batch = batch or windows
    while found < windows and (tried < TRIES or found > tried / RARE):
        wanted = min(windows - found, batch - found % batch)
        centres = [rng.integers(0, source.shape) for _ in range(wanted)]
        tried += wanted
        drawn = [_window(at, side, source.shape) for at in centres]
        for window, scene in zip(drawn, _read(source, drawn), strict=True):
            if scene.valid.any():
                found += 1
                yield window, scene
    if found == windows:
        return
    height, width = source.shape
    step = max(1, STRIP // width)
    strips = (slice(row, min(row + step, height)) for row in range(0, height, step))
    parts = [source.read(rows, slice(0, width)).valid.sum(axis=1) for rows in strips]
    valid = np.concatenate(parts)
    if not valid.any():
        raise SceneError("the scene has no valid pixel: check its nodata value")
    for row in rng.choice(height, windows - found, p=valid / valid.sum()).tolist():
        line = source.read(slice(row, row + 1), slice(0, width)).valid[0]
        centre = np.array([row, rng.choice(np.flatnonzero(line))])
        window = _window(centre, side, source.shape)
        yield window, source.read(*window)


def _read(source: Source, windows: Iterable[Window]) -> Iterator[Scene]:
    """Windows of a scene, a few of them read ahead."""
    return threaded(lambda window: source.read(*window), windows)


def _window(centre: IntArray, side: int | IntArray, shape: tuple[int, int]) -> Window:
    """A window about a centre, moved inside the scene where it must."""
    first = np.clip(centre - side // 2, 0, np.maximum(0, np.array(shape) - side))
    last = np.minimum(first + side, shape)
    rows, columns = map(slice, first.tolist(), last.tolist())
    return rows, columns


def _around(pairs: IntArray, about: int, shape: tuple[int, int]) -> Window:
    """The window that holds so many pixels to each side of some."""
    first = np.maximum(pairs.min(axis=0) - about, 0)
    last = np.minimum(pairs.max(axis=0) + about + 1, shape)
    rows, columns = map(slice, first.tolist(), last.tolist())
    return rows, columns


def _fill(piece: NDArray[Any], block: int) -> NDArray[Any]:
    """A whole block; where its part is smaller than a block, the rest is nodata."""
    missing = [block - length for length in piece.shape[:2]]
    if not any(missing):
        return piece
    return np.pad(piece, [(0, more) for more in missing] + [(0, 0)] * (piece.ndim - 2))


def _turn(piece: NDArray[Any], way: int) -> NDArray[Any]:
    """A block (rows, columns, ...) in one of its eight ways: turned by quarters, or mirrored."""
    swap, up, back = _WAYS[way]
    turned = piece.swapaxes(0, 1) if swap else piece
    return turned[:: -1 if up else 1, :: -1 if back else 1]


def _turned(row: int, column: int, block: int, way: int) -> tuple[int, int]:
    """Where a pixel of a block comes to lie."""
    swap, up, back = _WAYS[way]
    if swap:
        row, column = column, row
    return block - 1 - row if up else row, block - 1 - column if back else column
