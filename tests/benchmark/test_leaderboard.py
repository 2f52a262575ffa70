"""The leaderboard, from records that are made up: ranks, tests, costs, and its page."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from browsing import FLAGS
from commands import program, run
from thonecls.benchmark import STUDIES, Cell, cells_of, read_results, run_cells
from thonecls.benchmark.board_page import as_page, choice_markdown, summary_markdown
from thonecls.benchmark.choice import picks, proxy_accuracy
from thonecls.benchmark.leaderboard import (
    DEFAULT,
    PUBLISHED,
    Run,
    against,
    mechanism_of,
    mechanisms_of,
    rankings,
    runs_of_board,
)
from thonecls.benchmark.plan import Preset, changed
from thonecls.benchmark.records import Results, append_record
from thonecls.benchmark.studies import BOARD, BOARD_LABELS, BOARD_NETWORKS, BOARD_PROTOCOLS, BRIEF
from thonecls.methods import METHODS

PLACES = BOARD[:6]
F1 = {"density-ratio": 80.0, "sam": 60.0, "ace": 70.0, "t-honecls": 75.0}
COST = {"density-ratio": 16.0, "sam": 0.1, "ace": 0.2, "t-honecls": 3000.0}


def facts(cell: Cell, f1: float, **more: Any) -> dict[str, Any]:
    scores = dict.fromkeys(("precision", "recall", "f1", "auc", "accuracy"), f1)
    criteria = {"recall": f1, "share": 20.0, "puf": f1 / 10, "pauc": 100.0 - f1}
    return {
        "cell": cell.as_dict(),
        "scores": scores,
        "pu": criteria,
        "training_seconds": COST[cell.method] / 2,
        "machine": {"processor": "Abacus 7", "cores": 2, "threads": 2, "system": "Linux"},
        "versions": {"thonecls": "0.2.0"},
        "date": "2026-11-18T12:00:00+00:00",
        **more,
    }


@pytest.fixture
def results(tmp_path: Path) -> Results:
    """Four methods on six classes, T-HOneCls on five of them, two seeds."""
    lines = []
    for number, (dataset, target) in enumerate(PLACES):
        for method, f1 in F1.items():
            if method == PUBLISHED and number == 5:
                continue
            preset: Preset = "paper" if method == PUBLISHED else "fast"
            for seed in range(2):
                cell = Cell(dataset, target, method, preset, "half", seed)
                more = {"left_out": facts(cell, f1)["pu"] | {"prior": 0.2}} if seed == 0 else {}
                lines.append(json.dumps(facts(cell, f1 + number + seed, **more)))
    failed = Cell("indian-pines", 9, "sam", "fast", "half")
    lines.append(json.dumps({"cell": failed.as_dict(), "error": "LabelError: too few"}))
    (tmp_path / "results.jsonl").write_text("\n".join(lines) + "\n")
    return read_results(tmp_path)


def test_the_largest_ranking_comes_first_then_that_of_all_methods(results: Results) -> None:
    every, wide = (
        rankings(runs, "half")
        for runs in (
            runs_of_board(results),
            [run for run in runs_of_board(results) if run.place in PLACES[:5]],
        )
    )
    assert [len(r.standings) for r in every] == [4]  # 4 × 5 entries are more than 3 × 6
    assert every[0].places == wide[0].places == tuple(sorted(PLACES[:5]))
    assert [s.method for s in every[0].standings] == ["density-ratio", "t-honecls", "ace", "sam"]
    assert [s.rank for s in every[0].standings] == [1.0, 2.0, 3.0, 4.0]
    assert every[0].seeds == (0, 1)


def test_methods_with_few_classes_are_ranked_apart(results: Results) -> None:
    runs = runs_of_board(results)
    assert rankings([r for r in runs if r.place in PLACES[:4]], "half") == []  # too few classes
    # A method on two classes alone costs the others nothing; all but it are ranked.
    some = [r for r in runs if r.method != PUBLISHED or r.place in PLACES[:2]]
    (ranking,) = rankings(some, "half")
    assert [s.method for s in ranking.standings] == ["density-ratio", "ace", "sam"]
    assert ranking.places == tuple(sorted(PLACES))


def test_there_are_two_rankings_where_all_methods_share_fewer_classes() -> None:
    def made(method: str, places: int) -> list[Run]:
        scores = {"f1": float(len(method))}
        return [
            Run(method, "spectra", "half", place, 0, scores, 1.0, {}) for place in BOARD[:places]
        ]

    runs = [run for name in ("a", "bb", "ccc", "dddd") for run in made(name, 20)]
    runs += made("slow", 5) + made("slower", 5)
    first, second = rankings(runs, "half")
    assert (len(first.standings), len(first.places)) == (4, 20)
    assert (len(second.standings), len(second.places)) == (6, 5)
    assert [s.rank for s in second.standings[:3]] == [1.0, 2.5, 2.5]  # by the length of names


def test_the_mean_has_its_interval_over_seeds_and_a_cost_in_core_seconds(results: Results) -> None:
    ranking = rankings(runs_of_board(results), "half")[0]
    ours = ranking.find(DEFAULT)
    assert ours is not None
    assert ours.f1.mean == pytest.approx(80 + 2 + 0.5)
    assert ours.f1.n == 2
    assert ours.f1.low == pytest.approx(ours.f1.mean - 12.706 * 0.5, abs=1e-3)
    assert ours.cost == pytest.approx(16.0)  # seconds times threads
    assert [s.method for s in ranking.standings if s.on_front] == ["density-ratio", "ace", "sam"]


def test_methods_are_tested_on_the_classes_that_both_have(results: Results) -> None:
    runs = runs_of_board(results)
    ours, published = against(runs, "half", DEFAULT), against(runs, "half", PUBLISHED)
    assert {name: one.classes for name, one in ours.items()} == {
        "sam": 6,
        "ace": 6,
        "t-honecls": 5,
    }
    assert published[DEFAULT].difference == pytest.approx(5.0)
    assert published[DEFAULT].wins == 5
    p = [one.p for one in ours.values()]
    assert p == [pytest.approx(2 / 2**6)] * 2 + [pytest.approx(2 / 2**5)]
    assert [one.adjusted for one in ours.values()] == [pytest.approx(3 / 2**5)] * 3
    assert against(runs, "plot", DEFAULT) == {}


def test_variants_have_names_and_other_settings_do_not_take_part(tmp_path: Path) -> None:
    place = ("indian-pines", 2)
    for cell in (
        Cell(*place, "t-honecls"),
        Cell(*place, "t-honecls", "fast"),
        Cell(*place, "t-honecls", settings=(("order", 5),)),
        changed(Cell(*place, "t-honecls"), BRIEF),
        changed(Cell(*place, "t-honecls", prior="paper"), {**BRIEF, "warmup": 2}),
        changed(Cell(*place, "t-honecls", prior="paper"), {**BRIEF, "warmup": 3}),
    ):
        append_record(tmp_path, facts(cell, 50.0))
    priors = {"density-ratio": {}, "nnpu": {"prior": "true"}}
    for method, change in priors.items():
        cell = Cell(*place, method, "fast", **change)  # type: ignore[arg-type]
        append_record(tmp_path, {**facts(Cell(*place), 50.0), "cell": cell.as_dict()})
    names = [run.method for run in runs_of_board(read_results(tmp_path))]
    assert names == [
        "t-honecls",
        "t-honecls, fast",
        "t-honecls, brief",
        "t-honecls, KM2 prior, brief",
        "density-ratio",
        "nnpu, true prior, fast",
    ]


def test_how_labels_come_about_is_all_that_is_not_who_maps_what(results: Results) -> None:
    plain = {"dataset": "zion", "target": 1, "method": "sam", "preset": "fast", "seed": 3}
    assert mechanism_of(plain) == "the paper's labels"
    assert mechanism_of({**plain, "protocol": "resampled", "positives": 100}) == "scattered"
    assert mechanism_of({**plain, "protocol": "half", "wrong": 0.05}) == "half, wrong 0.05"
    runs = runs_of_board(results)
    assert mechanisms_of(runs) == ["half"]


def test_proxy_accuracy_is_accuracy_where_the_prior_is_true() -> None:
    rng = np.random.default_rng(0)
    truth, mapped = rng.random(1000) < 0.3, rng.random(1000) < 0.4
    criteria = {"recall": 100 * mapped[truth].mean(), "share": 100 * mapped.mean()}
    accuracy = 100 * (truth == mapped).mean()
    assert proxy_accuracy(criteria, float(truth.mean())) == pytest.approx(accuracy)


def test_criteria_are_judged_by_their_regret(results: Results) -> None:
    runs = runs_of_board(results)
    honest = {pick.criterion: pick for pick in picks(runs, "half", "left_out", DEFAULT)}
    # F1 of the best is that of density-ratio; PAUC is made to prefer the worst.
    assert honest["recall² / share"].regret.mean == 0
    assert honest["proxy accuracy"].best == 1
    assert honest["PAUC"].regret.mean == pytest.approx(20.0)
    assert honest["PAUC"].regret.n == 6  # tasks of seed 0, which alone left labels out
    assert honest["always density-ratio"].regret.mean == 0
    bound = {pick.criterion: pick for pick in picks(runs, "half", "pu", DEFAULT)}
    assert bound["PAUC"].regret.n == 12
    assert "proxy accuracy" not in bound  # no prior is known there


# The page


def test_the_page_has_all_and_asks_for_nothing(results: Results) -> None:
    page = as_page(results)
    assert "not run" not in page.partition("<script")[0].partition("In short")[2][:1500]
    assert "critical difference" in page
    addresses = set(re.findall(r"""(?:src|href|action)=["']([^"'#][^"']*)""", page))
    assert addresses == set()
    assert "url(http" not in page
    assert not re.search(r"\b(fetch|XMLHttpRequest|import)\s*\(", page)
    data = json.loads(page.partition('id="data">')[2].partition("</script>")[0])
    assert set(data["methods"]) == set(F1)
    assert page == as_page(results)  # the same records, the same page


def test_a_page_of_nothing_is_a_page() -> None:
    assert "0 methods" in as_page(Results({}, []))
    assert "0 cells are run" in summary_markdown(Results({}, []))
    assert "0 cells are run" in choice_markdown(Results({}, []))


def test_the_page_sorts_and_filters_in_a_browser(results: Results, tmp_path: Path) -> None:
    from playwright.sync_api import sync_playwright

    path = tmp_path / "leaderboard.html"
    path.write_text(as_page(results), "utf-8")
    chromium = program("chromium", "chromium-browser", "google-chrome")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=list(FLAGS))
        page = browser.new_page(viewport={"width": 390, "height": 800})
        asked: list[str] = []
        wrong: list[str] = []
        page.on("request", lambda request: asked.append(request.url))
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.goto(path.as_uri())

        def methods() -> list[str]:
            return page.locator("#board tbody tr:not(.group) th").all_inner_texts()

        assert methods() == ["density-ratio", "t-honecls", "ace", "sam"]
        page.get_by_role("button", name="core-seconds").click()
        assert methods() == ["sam", "ace", "density-ratio", "t-honecls"]
        page.get_by_role("button", name="core-seconds").click()
        assert methods() == ["t-honecls", "density-ratio", "ace", "sam"]
        page.select_option("#family", "spectra")
        assert methods() == ["ace", "sam"]
        page.fill("#search", "sa")
        assert methods() == ["sam"]
        assert "1 of 4 methods" in page.locator("#about").inner_text()
        assert page.evaluate("document.documentElement.scrollWidth") == 390
        browser.close()
    assert wrong == []
    assert asked == [path.as_uri()]


# The study


def test_the_study_has_what_costs_hours_on_a_part_of_its_classes() -> None:
    study = STUDIES["leaderboard"]
    cells = cells_of(study, seeds=[0])
    assert len({(cell.dataset, cell.target) for cell in cells}) == len(BOARD) == 26
    assert set(BOARD_NETWORKS) < set(BOARD)
    for protocol in BOARD_PROTOCOLS:
        own = [cell for cell in cells if cell.protocol == protocol]
        ratio = [cell for cell in own if cell.method == DEFAULT]
        assert {(c.dataset, c.target) for c in ratio} == set(BOARD)
        published = [c for c in own if c.method == PUBLISHED and c.preset == "paper"]
        assert {(c.dataset, c.target) for c in published} == set(BOARD_NETWORKS)
    assert all(
        (cell.dataset, cell.target) in BOARD_NETWORKS
        for cell in cells
        if METHODS[cell.method].network
    )
    for labels in BOARD_LABELS.values():
        own = [c for c in cells if labels.items() <= vars(c).items()]
        assert {(c.dataset, c.target) for c in own if c.method == DEFAULT} == set(BOARD)
        assert not any(METHODS[cell.method].network for cell in own)
    assert f"{len(BOARD_NETWORKS)} of the {len(BOARD)}" in study.title


def test_one_command_makes_the_page_from_records(
    results: Results, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("benchmark", "leaderboard", "--out", tmp_path, "--data-root", tmp_path)
    assert run(*words, "--render-only") == 0
    assert (tmp_path / "leaderboard.html").read_text("utf-8") == as_page(results)
    assert run(*words, "--dry-run", "--seeds", 1, "--method", "sam", "--left-out") == 0
    assert "176 of 182 cells" in capsys.readouterr().out.replace("\n", " ")


def test_labels_left_out_are_recorded_on_request(tmp_path: Path) -> None:
    half, plot = (
        Cell("indian-pines", 14, "matched-filter", "fast", protocol)
        for protocol in ("half", "plot")
    )
    run_cells([half], tmp_path, root=tmp_path)
    before = read_results(tmp_path)
    assert before.has(half, failed=True)
    assert not before.has(half, failed=True, left_out=True)
    run_cells([half, plot], tmp_path, root=tmp_path, left_out=True)
    after = read_results(tmp_path)
    assert after.has(half, failed=True, left_out=True)
    found, none = (after.records[cell.id].facts["left_out"] for cell in (half, plot))
    assert 0 < found["pauc"] <= 100
    assert 0 <= found["prior"] <= 1
    assert none is None  # of one plot nothing can be left out
    assert after.has(plot, failed=True, left_out=True)  # nor is it tried again
