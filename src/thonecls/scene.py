"""Scenes: a hyperspectral cube with its valid pixels, as frozen values."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from thonecls.errors import SceneError

FloatArray = NDArray[np.float32]
BoolArray = NDArray[np.bool_]
Bands = Literal["first", "last"]
NO_DATA = 255  # in maps of whole numbers, where 1 is the class and 0 is not
FAINT = 1e-3  # of the first principal component's variance: what varies less is mostly noise


@dataclass(frozen=True, eq=False)
class Scene:
    """A cube of C bands over H×W pixels.

    cube: (C, H, W) float32, finite wherever `valid`; valid: (H, W) bool, False on nodata.
    Build one with `as_scene`, which checks these rules.
    """

    cube: FloatArray
    valid: BoolArray

    @property
    def bands(self) -> int:
        return int(self.cube.shape[0])

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.cube.shape[1], self.cube.shape[2]

    def read(self, rows: slice, columns: slice) -> Scene:
        """A part of the scene, without copying it."""
        return Scene(self.cube[:, rows, columns], self.valid[rows, columns])

    def pick(self, pixels: NDArray[np.int64]) -> Scene:
        """Some pixels, by flat index, as a scene of one row."""
        rows, columns = np.unravel_index(pixels, self.shape)
        return Scene(self.cube[:, None, rows, columns], self.valid[None, rows, columns])


class Source(Protocol):
    """A scene that is read part by part, of any size; a `Scene` is one that is in memory."""

    @property
    def bands(self) -> int: ...
    @property
    def shape(self) -> tuple[int, int]: ...
    def read(self, rows: slice, columns: slice) -> Scene: ...


@dataclass(frozen=True, eq=False)
class ArraySource:
    """A source over an array of any kind, such as one mapped from a file: (C, H, W).

    keep: the bands in use, from 0, None for all; nodata: a value that marks missing pixels, as
    NaN then does too. Without it, NaN is refused.
    """

    array: NDArray[Any]
    keep: tuple[int, ...] | None = None
    nodata: float | None = None

    @property
    def bands(self) -> int:
        return int(self.array.shape[0]) if self.keep is None else len(self.keep)

    @property
    def shape(self) -> tuple[int, int]:
        return self.array.shape[1], self.array.shape[2]

    def take(self, positions: Sequence[int]) -> ArraySource:
        """The same scene with these bands, counted from 0, in this order."""
        kept = range(self.array.shape[0]) if self.keep is None else self.keep
        return replace(self, keep=tuple(kept[i] for i in positions))

    def read(self, rows: slice, columns: slice) -> Scene:
        """That part, checked as `as_scene` checks it."""
        return self._scene(self.keep, rows, columns)

    def thinned(self, positions: Sequence[int], rows: slice, columns: slice, step: int) -> Scene:
        """Some bands of a window, of every step-th row and column."""
        kept = range(self.array.shape[0]) if self.keep is None else self.keep
        thin = (slice(part.start, part.stop, step) for part in (rows, columns))
        return self._scene(tuple(kept[i] for i in positions), *thin)

    def _scene(self, keep: tuple[int, ...] | None, rows: slice, columns: slice) -> Scene:
        part = self.array[:, rows, columns]
        if keep is not None:
            part = part[list(keep)]
        if self.nodata is None:
            return as_scene(part)
        valid = np.isfinite(part).all(axis=0) & (part != self.nodata).all(axis=0)
        if valid.any():
            return as_scene(part, valid=valid)
        return Scene(np.zeros(part.shape, dtype=np.float32), valid)


def read_all(source: Source) -> Scene:
    """The whole scene, in memory."""
    return source.read(slice(0, source.shape[0]), slice(0, source.shape[1]))


@dataclass(frozen=True, eq=False)
class BandStatistics:
    """Mean and population standard deviation of each band: (C,) float32 each.

    axes: (k, C) float32, the principal components that a network takes in place of the z-scored
    bands (see `principal_axes`); None for the bands themselves.
    """

    mean: FloatArray
    std: FloatArray
    axes: FloatArray | None = None

    @property
    def channels(self) -> int:
        """How many numbers a network takes of each pixel."""
        return len(self.mean if self.axes is None else self.axes)


def as_source(cube: Source | NDArray[Any]) -> Source:
    """A source from a (C, H, W) array, checked and in memory; a source passes through."""
    return as_scene(cube) if isinstance(cube, np.ndarray) else cube


def as_scene(
    cube: Scene | NDArray[Any], *, bands: Bands = "first", valid: BoolArray | None = None
) -> Scene:
    """A checked `Scene` from an array; a `Scene` passes through.

    cube: (C, H, W), or (H, W, C) with bands="last". NaN or infinite values are refused
    unless `valid` (H, W) marks their pixels as nodata.

    >>> as_scene(np.arange(24.0).reshape(2, 3, 4), bands="last").shape
    (2, 3)
    """
    if isinstance(cube, Scene):
        return cube
    array = np.asarray(cube)
    if array.ndim != 3:
        raise SceneError(
            f"a cube has three axes, bands × rows × columns; got shape {array.shape}: "
            "stack the bands into one 3-D array"
        )
    if array.dtype == object or not (
        np.issubdtype(array.dtype, np.integer) or np.issubdtype(array.dtype, np.floating)
    ):
        raise SceneError(f"a cube holds real numbers; got {array.dtype}: convert it to float32")
    if bands == "last":
        array = np.moveaxis(array, 2, 0)
    if array.shape[0] < 2:
        raise SceneError(
            f"a cube needs at least 2 bands; got {array.shape[0]} in shape {array.shape}: "
            "check which axis holds the bands"
        )
    if 0 in array.shape:
        raise SceneError(f"a cube needs at least one pixel; got shape {array.shape}")
    with np.errstate(over="ignore"):  # what overflows becomes infinite and is refused below
        array = np.ascontiguousarray(array, dtype=np.float32)
    finite = np.isfinite(array).all(axis=0)
    if valid is None:
        valid = np.ones(array.shape[1:], dtype=bool)
        if not finite.all():
            raise SceneError(
                f"the cube holds NaN or infinite values in {int((~finite).sum())} of "
                f"{finite.size} pixels: repair or cut them out; from Python, "
                "as_scene(cube, valid=mask) leaves them out as nodata"
            )
    elif valid.shape != array.shape[1:]:
        raise SceneError(f"valid has shape {valid.shape}, the scene {array.shape[1:]}")
    valid = np.asarray(valid, dtype=bool) & finite
    if not valid.any():
        raise SceneError("the scene has no valid pixel: check its nodata value")
    return Scene(array, valid)


def find_band_axis(
    shape: tuple[int, ...],
    *,
    mask: tuple[int, int] | None = None,
    pairs: tuple[int, int] | None = None,
    bands: int | None = None,
) -> Bands | None:
    """Which end of a 3-D shape holds the bands, by what else is known; None if that is unclear.

    mask: the H×W of a label mask; pairs: the largest row and column labelled; bands: their number.

    >>> find_band_axis((145, 145, 200), mask=(145, 145)), find_band_axis((200, 9, 8), mask=(9, 8))
    ('last', 'first')
    """
    fits: list[Bands] = []
    for axis, count, size in (("first", shape[0], shape[1:]), ("last", shape[-1], shape[:2])):
        if (
            (mask is None or size == mask)
            and (pairs is None or (pairs[0] < size[0] and pairs[1] < size[1]))
            and (bands is None or count == bands)
        ):
            fits.append("first" if axis == "first" else "last")
    return fits[0] if len(fits) == 1 else None


def band_statistics(scene: Scene) -> BandStatistics:
    """Mean and std (ddof 0) of each band over the valid pixels, summed in float64."""
    pixels = scene.cube[:, scene.valid]
    mean = pixels.mean(axis=1, dtype=np.float64)
    std = pixels.std(axis=1, dtype=np.float64, mean=mean[:, None])
    return BandStatistics(mean.astype(np.float32), std.astype(np.float32))


def pooled_statistics(scenes: Iterable[Scene]) -> BandStatistics:
    """`band_statistics` over the valid pixels of several scenes, held one at a time.

    >>> a, b = as_scene(np.zeros((2, 1, 1))), as_scene(np.full((2, 1, 1), 4.0))
    >>> pooled = pooled_statistics([a, b])
    >>> pooled.mean.tolist(), pooled.std.tolist()
    ([2.0, 2.0], [2.0, 2.0])
    """
    count = 0
    mean = squares = np.zeros(1)
    for scene in scenes:
        if not (n := int(scene.valid.sum())):
            continue
        part = band_statistics(scene)
        away = part.mean.astype(np.float64) - mean
        squares = squares + n * part.std.astype(np.float64) ** 2 + away**2 * count * n / (count + n)
        count += n
        mean = mean + away * n / count
    return BandStatistics(
        np.asarray(mean, dtype=np.float32), np.sqrt(squares / count).astype(np.float32)
    )


def standardize(scene: Scene, statistics: BandStatistics) -> FloatArray:
    """The z-scored cube, (C, H, W) float32; nodata and constant bands become 0.

    >>> scene = as_scene(np.stack([np.full((2, 2), 7.0), np.array([[0, 1], [0, 1.0]])]))
    >>> standardize(scene, band_statistics(scene))[:, 0].tolist()
    [[0.0, 0.0], [-1.0, 1.0]]
    """
    # A band whose spread is only rounding noise is constant, and must not be blown up.
    noise = 1e-6 * np.maximum(np.abs(statistics.mean), np.float32(1e-30))
    constant = statistics.std <= noise
    scale = np.where(constant, 0, 1 / np.where(constant, 1, statistics.std))
    cube = scene.cube - statistics.mean[:, None, None]
    cube *= scale.astype(np.float32)[:, None, None]
    cube[:, ~scene.valid] = 0
    return cube


def principal_axes(spectra: FloatArray, components: int) -> FloatArray:
    """The first principal components of z-scored spectra (n, C): (k, C), k at most `components`.

    All axes share one scale, which makes the mean variance of the components 1: they are turned
    bands, and stay as unequal as they are.

    >>> spectra = np.array([[3.0, 3.0], [-3.0, -3.0], [1.0, -1.0], [-1.0, 1.0]], dtype=np.float32)
    >>> principal_axes(spectra, 1).round(3)
    array([[0.236, 0.236]], dtype=float32)
    """
    kept, variances = _principal(spectra, components)
    return np.asarray((kept / np.sqrt(max(variances.mean(), 1e-30))).T, dtype=np.float32)


def whitened_axes(spectra: FloatArray, components: int) -> FloatArray:
    """As `principal_axes`, but every component has the variance 1, or less where it has little.

    What varies less than `FAINT` of the first component counts as if it varied so much: beyond,
    there is mostly noise. One over the length of an axis is the component's standard deviation.

    >>> spectra = np.array([[3.0, 3.0], [-3.0, -3.0], [1.0, -1.0], [-1.0, 1.0]], dtype=np.float32)
    >>> (spectra @ whitened_axes(spectra, 2).T).std(axis=0).round(3).tolist()
    [1.0, 1.0]
    """
    kept, variances = _principal(spectra, components)
    variances = np.maximum(variances, max(FAINT * variances[0], 1e-30))
    return np.asarray((kept / np.sqrt(variances)).T, dtype=np.float32)


def _principal(
    spectra: FloatArray, components: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Directions of most variance as columns (C, k), and the variances along them (k,)."""
    centred = spectra.astype(np.float64)
    values, vectors = np.linalg.eigh(centred.T @ centred / len(centred))
    kept = vectors[:, ::-1][:, : min(components, spectra.shape[1])]
    # An axis may point either way: its largest weight is made positive.
    signs = np.sign(kept[np.abs(kept).argmax(0), np.arange(kept.shape[1])])
    return kept * signs, values[::-1][: kept.shape[1]]


def project(cube: FloatArray, statistics: BandStatistics) -> FloatArray:
    """What a network takes of a z-scored cube (C, H, W): its components (k, H, W), or itself."""
    if statistics.axes is None:
        return cube
    return np.ascontiguousarray(np.tensordot(statistics.axes, cube, 1))
