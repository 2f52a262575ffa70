"""The real scene that comes with the package, and the made one."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import rasterio
from scipy.io import savemat

from thonecls.datasets import enmap_potsdam, houston_crop, indian_pines, synthetic
from thonecls.errors import ConfigError, FileError


def test_indian_pines_is_the_scene_everyone_uses() -> None:
    data = indian_pines()
    assert data.scene.cube.shape == (200, 145, 145)
    assert data.truth.shape == (145, 145)
    assert sorted(data.classes) == list(range(1, 17))
    counts = np.bincount(data.truth.ravel())
    assert counts.sum() - counts[0] == 10249
    assert (counts[2], counts[11]) == (1428, 2455)
    assert (data.classes[2], data.classes[11]) == ("Corn-notill", "Soybean-mintill")


def test_synthetic_scenes_follow_their_seed() -> None:
    one, same, other = synthetic(seed=4), synthetic(seed=4), synthetic(seed=5)
    np.testing.assert_array_equal(one.scene.cube, same.scene.cube)
    np.testing.assert_array_equal(one.truth, same.truth)
    assert not np.array_equal(one.truth, other.truth)


def _fisher(separation: float, variability: float = 0.05) -> float:
    """Distance of two class means against the spread inside the classes."""
    data = synthetic(separation=separation, variability=variability, texture=0.0)
    one, two = (data.scene.cube[:, data.truth == c] for c in (1, 2))
    gap = float(np.linalg.norm(one.mean(axis=1) - two.mean(axis=1)))
    return gap / float(one.std(axis=1).mean() + two.std(axis=1).mean())


def test_separation_and_variability_make_a_scene_easy_or_hard() -> None:
    assert _fisher(1.0) > 5 * _fisher(0.1)
    assert _fisher(1.0, 0.05) > 5 * _fisher(1.0, 0.5)


def test_texture_varies_smoothly_over_space() -> None:
    plain, rough = (synthetic(texture=t, variability=0.0).scene.cube for t in (0.0, 0.5))
    data = synthetic(texture=0.0, variability=0.0)
    assert plain[:, data.truth == 1].std(axis=1).max() < 1e-4
    assert rough[:, data.truth == 1].std(axis=1).max() > 0.05


def test_sizes_and_classes_are_as_asked() -> None:
    data = synthetic(height=31, width=17, bands=5, classes=3, fields=9)
    assert data.scene.cube.shape == (5, 31, 17)
    assert set(np.unique(data.truth)) == {1, 2, 3}
    assert max(data.rgb) < 5


def test_impossible_scenes_are_refused() -> None:
    with pytest.raises(ConfigError, match="a synthetic scene needs"):
        synthetic(classes=30)
    with pytest.raises(ConfigError, match="Got 48×48×1"):
        synthetic(bands=1)


def test_houston_takes_the_labels_of_pure_blocks(tmp_path: Path) -> None:
    labels = np.full((8, 12), 3, dtype=np.uint8)
    labels[0, 0] = 1
    cube = np.arange(2 * 3 * 5, dtype=np.uint16).reshape(2, 3, 5)
    (tmp_path / "below").mkdir()
    savemat(tmp_path / "below/houston_dataset.mat", {"hyprImg": cube, "clasLabs": labels})
    data = houston_crop(tmp_path)
    assert data.scene.cube.shape == (5, 2, 3)
    assert data.truth.tolist() == [[0, 3, 3], [3, 3, 3]]


def test_potsdam_leaves_bad_bands_and_nodata_out(tmp_path: Path) -> None:
    cube = np.arange(3 * 4 * 5, dtype=np.int16).reshape(3, 4, 5)
    cube[:, 0, 0] = -1
    shape = {"driver": "GTiff", "height": 4, "width": 5, "transform": rasterio.Affine.scale(30)}
    with rasterio.open(
        tmp_path / "scene.tif", "w", count=3, dtype="int16", nodata=-1, **shape
    ) as file:
        file.write(cube)
        for band, good in enumerate("101", 1):
            file.update_tags(band, bbl=good)
    with rasterio.open(tmp_path / "truth.tif", "w", count=1, dtype="uint8", **shape) as file:
        file.write(np.full((1, 4, 5), 6, dtype=np.uint8))
    data = enmap_potsdam(tmp_path)
    np.testing.assert_array_equal(data.scene.cube[:, 1], cube[[0, 2], 1])
    assert not data.scene.valid[0, 0]
    assert data.scene.valid.sum() == 19
    assert (data.truth[0, 0], data.truth[1, 1]) == (0, 6)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileError, match=r"no houston_dataset\.mat in"):
        houston_crop(tmp_path)
