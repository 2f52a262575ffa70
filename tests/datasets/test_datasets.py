"""The catalogue's facts, the real scene that comes with a package, and the made one."""

from __future__ import annotations

import numpy as np
import pytest

from thonecls.datasets import DATASETS, indian_pines, synthetic
from thonecls.errors import ConfigError


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


@pytest.mark.parametrize("name", DATASETS)
def test_facts_of_a_dataset_agree_with_each_other(name: str) -> None:
    spec = DATASETS[name]
    assert spec.name == name
    assert list(spec.classes) == list(range(1, 1 + len(spec.classes)))
    assert len(set(spec.classes.values())) == len(spec.classes)
    assert max(spec.rgb) < spec.bands
    assert len(spec.urls) in (0, 2)


def test_sizes_and_numbers_of_classes_are_the_published_ones() -> None:
    facts = {name: (*s.shape, s.bands, len(s.classes)) for name, s in DATASETS.items()}
    assert facts == {
        "honghu": (678, 465, 270, 22),
        "hanchuan": (1217, 303, 274, 16),
        "longkou": (550, 400, 270, 9),
        "indian-pines": (145, 145, 200, 16),
        "pavia-university": (610, 340, 103, 9),
        "honghu-full": (940, 475, 270, 22),
        "pavia-centre": (1096, 715, 102, 9),
        "salinas": (512, 217, 204, 16),
        "ksc": (512, 614, 176, 13),
        "botswana": (1476, 256, 145, 14),
        "houston-2013": (349, 1905, 144, 15),
        "houston-crop": (128, 128, 48, 12),
        "enmap-potsdam": (192, 160, 218, 6),
        "potsdam-south": (128, 128, 218, 6),
        "zion": (1428, 1128, 4, 8),
        "sentinel2": (768, 1536, 13, 8),
    }


@pytest.mark.parametrize(
    ("name", "classes"),
    [
        ("honghu", "4 Cotton, 6 Rape, 7 Chinese cabbage, 9 Cabbage, 10 Tuber mustard"),
        ("longkou", "1 Corn, 3 Sesame, 4 Broad-leaf soybean, 6 Rice"),
        (
            "hanchuan",
            "1 Strawberry, 2 Cowpea, 3 Soybean, 6 Watermelon, 14 Road, 16 Water",
        ),
        ("indian-pines", "2 Corn-notill, 11 Soybean-mintill"),
        ("pavia-university", "2 Meadows, 8 Self-Blocking Bricks"),
    ],
)
def test_the_papers_classes_have_its_numbers_and_names(name: str, classes: str) -> None:
    for number, title in (entry.split(" ", 1) for entry in classes.split(", ")):
        assert DATASETS[name].classes[int(number)] == title
