"""Pseudo-batches: their number, their sizes, and that every pixel is used at most once."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from thonecls.method.sampler import pseudo_batches


def draw(positives: int, unlabeled: int, count: int, seed: int = 0) -> list[tuple[int, int]]:
    generator = torch.Generator().manual_seed(seed)
    found = pseudo_batches(torch.arange(positives), torch.arange(unlabeled), count, generator)
    return [(len(p), len(u)) for p, u in found]


@pytest.mark.parametrize(
    ("positives", "unlabeled", "batches"),
    [(100, 4000, 10), (105, 4000, 10), (105, 4005, 11), (19, 4009, 11)],
)
def test_number_of_batches(positives: int, unlabeled: int, batches: int) -> None:
    assert len(draw(positives, unlabeled, 10)) == batches


def test_rests_of_both_classes_make_a_shorter_batch() -> None:
    sizes = draw(105, 4005, 10)
    assert sorted(sizes) == [(5, 5)] + [(10, 400)] * 10


@pytest.mark.parametrize(("positives", "unlabeled"), [(1, 4000), (3, 4000), (9, 9), (100, 2)])
def test_fewer_pixels_than_batches_give_fewer_batches(positives: int, unlabeled: int) -> None:
    sizes = draw(positives, unlabeled, 10)
    assert 1 <= len(sizes) <= 10 + 1
    assert all(p >= 1 and u >= 1 for p, u in sizes)


@given(st.integers(1, 60), st.integers(1, 300), st.integers(1, 12), st.integers(0, 5))
def test_every_index_is_used_at_most_once(p: int, u: int, count: int, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    positive, unlabeled = torch.arange(p) + 1000, torch.arange(u)
    batches = pseudo_batches(positive, unlabeled, count, generator)
    for part, whole in zip(zip(*batches, strict=True), (positive, unlabeled), strict=True):
        used = torch.cat(list(part))
        assert len(used.unique()) == len(used)
        assert set(used.tolist()) <= set(whole.tolist())


def test_all_positives_are_used_when_the_counts_divide() -> None:
    generator = torch.Generator().manual_seed(1)
    batches = pseudo_batches(torch.arange(100), torch.arange(4000), 10, generator)
    assert sorted(torch.cat([p for p, _ in batches]).tolist()) == list(range(100))
    assert sorted(torch.cat([u for _, u in batches]).tolist()) == list(range(4000))


def test_batches_follow_the_generator() -> None:
    def first(seed: int) -> list[int]:
        generator = torch.Generator().manual_seed(seed)
        return pseudo_batches(torch.arange(50), torch.arange(50), 5, generator)[0][0].tolist()

    assert first(4) == first(4)
    assert first(4) != first(5)
