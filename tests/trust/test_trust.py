"""Reports on maps without negatives: simulated worlds of known truth, warnings and words."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulated import Scores, world
from thonecls.errors import LabelError
from thonecls.metrics import find_degenerate
from thonecls.priors import Prior
from thonecls.trust import (
    BOUND,
    Circumstances,
    Opinion,
    TrustReport,
    assess,
    count_votes,
    find_places,
    percent,
    summarise,
)

fraction = st.floats(0, 1)
ALL_OVER = find_places(np.arange(0, 100 * 100, 97), (100, 100))


def report(
    held_out: Scores | None, unlabeled: Scores, *, threshold: float = 0.5, **known: Any
) -> TrustReport:
    settings: dict[str, Any] = {"rng": np.random.default_rng(0), "bootstraps": 60}
    about = Circumstances(**known)
    return assess(held_out, unlabeled, about, threshold=threshold, **settings)


def good_run(**kwargs: Any) -> TrustReport:
    held_out, unlabeled, _ = world(np.random.default_rng(1))
    return report(held_out, unlabeled, **kwargs)


def names(found: TrustReport) -> set[str]:
    return {caution.name for caution in found.cautions}


# Known truth


@pytest.mark.parametrize(("prevalence", "apart"), [(0.1, 4.0), (0.02, 5.0), (0.3, 3.0)])
def test_estimates_are_near_the_truth_of_a_simulated_world(prevalence: float, apart: float) -> None:
    rng = np.random.default_rng(3)
    held_out, unlabeled, truth = world(
        rng, prevalence=prevalence, labels=500, pixels=40_000, apart=apart
    )
    found = report(held_out, unlabeled)
    mapped = unlabeled > 0.5
    precision = (mapped & truth).sum() / mapped.sum()
    recall = (mapped & truth).sum() / truth.sum()
    assert found.held_out is not None
    assert found.prevalence.value == pytest.approx(prevalence, rel=0.1)
    assert found.held_out.recall.value == pytest.approx(recall, abs=0.04)
    assert found.held_out.precision.value == pytest.approx(precision, abs=0.06)
    assert found.held_out.f1.value == pytest.approx(
        2 * precision * recall / (precision + recall), abs=0.05
    )
    assert found.held_out.fpr.value == pytest.approx(
        (mapped & ~truth).sum() / (~truth).sum(), abs=0.02
    )
    ranks = unlabeled.argsort().argsort()[truth] + 1
    n = truth.sum()
    auc = (ranks.sum() - n * (n + 1) / 2) / (n * (truth.size - n))
    assert found.held_out.auc == pytest.approx(auc, abs=0.01)


def test_intervals_cover_the_truth_in_most_worlds() -> None:
    rng = np.random.default_rng(4)
    covered = np.zeros(3)
    worlds = 30
    for _ in range(worlds):
        held_out, unlabeled, truth = world(rng, pixels=4000)
        found = assess(held_out, unlabeled, rng=rng, bootstraps=60).held_out
        assert found is not None
        mapped = unlabeled > 0.5
        hits = (mapped & truth).sum()
        true = (hits / truth.sum(), hits / mapped.sum(), 2 * hits / (mapped.sum() + truth.sum()))
        for i, (estimate, value) in enumerate(
            zip((found.recall, found.precision, found.f1), true, strict=True)
        ):
            assert estimate.low is not None
            assert estimate.high is not None
            covered[i] += estimate.low <= value <= estimate.high
    assert (covered / worlds > 0.8).all()


def test_spectral_priors_join_the_others() -> None:
    priors = [Prior("km2", 0.12, 0.08, 0.16), Prior("bbe", 0.11, np.nan, np.nan)]
    found = good_run(priors=priors).prevalence
    by_name = {estimate.name: estimate for estimate in found.estimates}
    assert set(by_name) == {
        "best-bin",
        "mean-probability",
        "share-by-recall",
        "km2-of-spectra",
        "bbe-of-spectra",
    }
    km2, bbe = by_name["km2-of-spectra"], by_name["bbe-of-spectra"]
    assert (km2.low, km2.high, km2.level) == (0.08, 0.16, 0.9)
    assert (bbe.low, bbe.high) == (None, None)
    values = [estimate.value for estimate in found.estimates]
    assert (found.low, found.high) == (min(values), max(values))


def test_the_consensus_does_not_exceed_what_the_map_leaves_room_for() -> None:
    """Mapped share / recall is a bound: with it alone every map would be wholly right."""
    found = good_run(priors=[Prior("km2", 0.5, 0.4, 0.6), Prior("km1", 0.6, 0.5, 0.7)]).prevalence
    bound = next(e.value for e in found.estimates if e.name == BOUND)
    assert found.median > bound
    assert found.clipped
    assert found.value <= bound


def test_more_doubt_about_the_prevalence_widens_the_precision() -> None:
    held_out, unlabeled, _ = world(np.random.default_rng(5), apart=3.0, labels=400)
    sure = report(held_out, unlabeled, priors=[Prior("km2", 0.1, 0.099, 0.101)]).held_out
    unsure = report(held_out, unlabeled, priors=[Prior("km2", 0.1, 0.01, 0.19)]).held_out
    assert sure is not None
    assert unsure is not None
    assert (unsure.precision.low or 0) < (sure.precision.low or 0)


# Warnings


HEALTHY = {
    "loss": [-0.5 - 0.02 * epoch for epoch in range(30)],
    "positive": [1 / (epoch + 1) for epoch in range(30)],
}


def test_a_good_run_has_no_warning() -> None:
    rng = np.random.default_rng(6)
    maps = np.clip(rng.choice([0.02, 0.98], 500) + rng.normal(0, 0.01, (3, 500)), 0, 1)
    found = good_run(
        places=ALL_OVER,
        opinions=[Opinion("sam", 0.2, 0.4), Opinion("ace", 0.1, 0.7)],
        history=HEALTHY,
        degenerate=None,
        votes=count_votes(maps),
    )
    assert found.cautions == ()
    assert found.level == "good"


def test_noise_in_the_history_is_not_domination() -> None:
    rng = np.random.default_rng(7)
    noisy = {
        "loss": (-1.2 + rng.normal(0, 0.05, 40)).tolist(),
        "positive": np.abs(0.1 + rng.normal(0, 0.05, 40)).tolist(),
    }
    for history in (noisy, {"loss": [0.5], "positive": [0.1]}, {"share": [0.2] * 40}):
        assert names(good_run(history=history)) == set()


def test_a_degenerate_map_is_poor() -> None:
    message = find_degenerate(np.full((4, 4), 0.9, dtype=np.float32), np.array([2]))
    found = report(np.full(30, 0.9), np.full(500, 0.9), degenerate=message)
    assert "degenerate" in names(found)
    assert found.level == "poor"
    assert found.cautions[0].text == message
    words = "The map is uninformative: it covers 100 % of the scene. Do not use it."
    assert summarise(found) == words


def test_unlabeled_domination() -> None:
    history = {
        "loss": [-0.5 - 0.02 * epoch for epoch in range(30)],
        "positive": [0.5 + 0.02 * epoch for epoch in range(30)],
    }
    found = good_run(history=history)
    assert names(found) == {"domination"}
    assert "fewer epochs" in found.cautions[0].step


def test_labels_from_a_part_of_the_scene_never_make_a_good_map() -> None:
    part = find_places(np.arange(0, 50 * 100, 97), (100, 100), north_up=True)
    assert (part.coverage, part.half) == ("part", "south half")
    found = good_run(places=part)
    assert names(found) == {"places"}
    assert found.level == "check"
    assert "the south half has none" in found.cautions[0].text
    assert "93 % were found" in found.cautions[0].text
    assert "suggest" in found.step
    assert "is not known" in summarise(found)
    patch = replace(part, coverage="patch", half=None, empty=("north-east",), blocks=1)
    (caution,) = good_run(places=patch).cautions
    assert "in a patch or two; the north-east has none" in caution.text
    assert "were found" not in caution.text  # two places or one tell nothing of others


def test_low_recall_in_places_left_out_is_told_but_not_taken_for_the_maps() -> None:
    held_out, unlabeled, _ = world(np.random.default_rng(11))
    held_out[:70] = 0.2
    part = find_places(np.arange(0, 50 * 100, 97), (100, 100))
    assert "low-recall" not in names(report(held_out, unlabeled, places=part))


def test_another_method_that_makes_another_map() -> None:
    opinions = [Opinion("sam", 0.33, 0.2), Opinion("ace", 0.3, 0.35)]
    found = good_run(opinions=opinions)
    assert names(found) == {"opinions"}
    assert "(ace) marks 30 % of the scene" in found.cautions[0].text
    assert "share only 35 %" in found.cautions[0].text
    assert found.level == "check"


def test_a_map_of_what_no_label_looks_like() -> None:
    assert names(good_run(places=replace(ALL_OVER, unlike=0.7))) == {"unlike"}


def test_the_gravest_caution_tells_what_to_do() -> None:
    found = good_run(places=replace(ALL_OVER, unlike=0.7), degenerate="It says nothing.")
    assert found.level == "poor"
    assert "thonecls check" in found.step


def test_few_labels_and_a_wide_interval() -> None:
    held_out, unlabeled, _ = world(np.random.default_rng(9))
    assert "few-labels" in names(report(held_out[:12], unlabeled))
    half = np.where(np.arange(30) % 2, 0.9, 0.1)
    assert "wide-recall" in names(report(half, unlabeled))
    assert not names(report(held_out, unlabeled)) & {"few-labels", "wide-recall"}


def test_estimates_of_prevalence_that_disagree() -> None:
    found = good_run(priors=[Prior("km2", 0.6, 0.5, 0.7)])
    assert "prevalence" in names(found)
    assert found.level == "check"
    assert found.rough
    assert "only guessed at" in summarise(found)


def test_more_of_the_class_than_the_map_leaves_room_for() -> None:
    priors = [Prior(name, 0.18, 0.17, 0.19) for name in ("km1", "km2", "bbe")]
    assert names(good_run(priors=priors)) == {"contradiction"}


def test_a_map_that_is_mostly_wrong() -> None:
    """Four times as many pixels are mapped as look like the labels."""
    rng = np.random.default_rng(10)
    held_out = rng.uniform(0.9, 1, 60)
    unlabeled = np.concatenate(
        [rng.uniform(0.9, 1, 500), rng.uniform(0.5, 0.6, 1500), rng.uniform(0, 0.01, 20_000)]
    )
    found = report(held_out, unlabeled)
    assert found.held_out is not None
    assert "low-precision" in names(found)
    assert found.held_out.suggested.threshold > 0.59  # though the mean probability is too high
    text = next(c.step for c in found.cautions if c.name == "low-precision")
    assert f"to {found.held_out.suggested.threshold:.4g} say" in text


def test_a_map_that_misses_most_labels_is_poor() -> None:
    held_out, unlabeled, _ = world(np.random.default_rng(11))
    held_out[:70] = 0.2
    found = report(held_out, unlabeled)
    assert "low-recall" in names(found)
    assert found.level == "poor"


def test_seeds_that_disagree() -> None:
    maps = np.random.default_rng(12).random((3, 500))
    assert names(good_run(votes=count_votes(maps))) == {"seeds"}


@pytest.mark.parametrize("held_out", [None, np.empty(0), np.array([np.nan])])
def test_without_held_out_labels_recall_is_not_known(held_out: Scores | None) -> None:
    _, unlabeled, _ = world(np.random.default_rng(13))
    found = report(held_out, unlabeled)
    assert names(found) == {"no-holdout"}
    assert found.held_out is None
    assert [estimate.name for estimate in found.prevalence.estimates] == ["mean-probability"]
    assert "is not known" in summarise(found)
    assert found.level == "check"


# Words and files


def test_the_summary_is_a_sentence_with_its_intervals() -> None:
    found = good_run(covered=0.061)
    assert summarise(found) == (
        "The map finds about 93 % (86 to 97 %) of the class, by labels left out of training, and "
        "covers 6.1 % of the scene; between 87 and 100 % of what it marks is estimated to be right."
    )


def test_the_summary_knows_what_it_does_not_know() -> None:
    held_out, unlabeled, _ = world(np.random.default_rng(15))
    without = assess(held_out, unlabeled, rng=np.random.default_rng(0), bootstraps=0)
    assert "; nearly 100 % of what it marks" in summarise(without)
    assert summarise(report(held_out, np.zeros(50))) == (
        "The map marks nothing: no probability is above 0.5."
    )


@given(fraction)
def test_shares_are_rounded_but_never_to_a_lie(share: float) -> None:
    text = percent(share)
    assert (text == "100 %") == (share == 1)
    assert (text == "0 %") == (share == 0)


def test_a_report_is_ready_for_json() -> None:
    for found in (good_run(priors=[Prior("km2", 0.1, np.nan, np.nan)]), report(None, np.ones(9))):
        assert json.loads(json.dumps(asdict(found), allow_nan=False))["threshold"] == 0.5


def test_the_same_seed_gives_the_same_report() -> None:
    assert good_run() == good_run()


def test_nodata_is_left_out() -> None:
    held_out, unlabeled, _ = world(np.random.default_rng(14))
    holes = np.append(unlabeled, [np.nan] * 50)
    assert report(np.append(held_out, np.nan), holes) == report(held_out, unlabeled)


def test_no_unlabeled_pixels_are_an_error() -> None:
    with pytest.raises(LabelError, match="Got none"):
        report(np.ones(3), np.array([np.nan]))


@given(
    st.lists(fraction, min_size=0, max_size=12),
    st.lists(fraction, min_size=1, max_size=40),
    st.floats(0.01, 0.99),
)
def test_any_probabilities_give_a_report_in_range(
    held_out: list[float], unlabeled: list[float], threshold: float
) -> None:
    found = assess(
        np.array(held_out),
        np.array(unlabeled),
        rng=np.random.default_rng(0),
        threshold=threshold,
        bootstraps=5,
    )
    json.dumps(asdict(found), allow_nan=False)
    assert summarise(found)
    estimates = list(found.prevalence.estimates)
    if found.held_out is not None:
        held = found.held_out
        estimates += [held.recall, held.precision, held.f1, held.fpr]
    for estimate in estimates:
        low, high = estimate.low, estimate.high
        assert low is not None
        assert high is not None
        assert -1e-12 <= low <= estimate.value <= high <= 1 + 1e-12


def test_the_summary_names_the_bare_half_and_the_area() -> None:
    places = replace(find_places(np.arange(0, 4000, 37), (100, 100)), coverage="all")
    assert places.half == "lower half"
    words = summarise(good_run(places=places), "12 ha")
    assert "of the scene (12 ha)" in words
    assert words.endswith("The lower half of the scene has no label.")
    part = summarise(good_run(places=replace(places, coverage="part")))
    assert "from a part of the scene only (the lower half has none)" in part


def test_one_number_for_what_is_mapped() -> None:
    """The scene's own share, not that of the pixels that are looked at."""
    found = good_run(opinions=[Opinion("sam", 0.33, 0.2)], covered=0.07)
    assert "this map 7.0 %" in found.cautions[0].text
    assert "covers 7.0 % of the scene" in summarise(found)
