"""The page about a map: what it shows and leaves out, and that it fits a phone."""

from __future__ import annotations

import json
import re
import subprocess
from dataclasses import dataclass, replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression

from commands import program
from thonecls.datasets import Dataset, synthetic
from thonecls.maps import Backdrop, Marks, draw_map
from thonecls.method.novelty import find_odd
from thonecls.metrics import Scores, evaluate
from thonecls.priors import Prior
from thonecls.report.plots import Truth, draw_errors, false_colour
from thonecls.report.report import (
    Picture,
    Report,
    Verdict,
    Verified,
    as_json,
    confusion,
    draw_disagreement,
    draw_novelty,
    draw_probability,
    draw_scores,
    draw_spectra,
    draw_thresholds,
    hectares,
    judge,
    render,
    summarise_points,
)
from thonecls.scene import Scene
from thonecls.trust import (
    Circumstances,
    Opinion,
    TrustReport,
    assess,
    count_votes,
    find_places,
    summarise,
    verify,
)

PNG = b"\x89PNG\r\n\x1a\n"
SECTIONS = (
    *("summary", "map", "verified", "warnings", "panels", "trust", "truth"),
    *("spectra", "curves", "facts", "settings", "command"),
)
# Without a sandbox, which root may not have; nothing is fetched.
HEADLESS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)
BANDS = 48
VOID = {"meta", "img", "link", "br", "hr", "input"}


@dataclass(frozen=True, eq=False)
class World:
    """A made scene, 60 labels to learn from and 40 held out, and a linear classifier's map."""

    data: Dataset
    labels: NDArray[np.int64]
    probability: NDArray[np.float32]

    @property
    def spectra(self) -> NDArray[np.float32]:
        return self.data.scene.cube.reshape(BANDS, -1).T

    @property
    def positives(self) -> NDArray[np.bool_]:
        mask = np.zeros(self.data.scene.shape, dtype=bool)
        mask.flat[self.labels] = True
        return mask


def make_world(height: int, width: int, rng: np.random.Generator) -> World:
    data = synthetic(
        height=height, width=width, bands=BANDS, separation=0.25, variability=0.12, seed=5
    )
    drawn = rng.choice(np.flatnonzero(data.truth == 2), 100, replace=False)
    unlabeled = rng.choice(data.truth.size, 1500, replace=False)
    world = World(data, drawn, np.empty(0, dtype=np.float32))
    x = world.spectra[np.concatenate([drawn[:60], unlabeled])]
    model = LogisticRegression(class_weight="balanced", C=0.3).fit(x, np.arange(len(x)) < 60)
    flat = model.predict_proba(world.spectra)[:, 1].astype(np.float32)
    return replace(world, probability=flat.reshape(data.scene.shape))


def make_pictures(world: World, trust: TrustReport, folder: Path) -> dict[str, tuple[Picture, ...]]:
    """The map, the spectra of the labels, two of which are wrong, and the curves."""
    scene, flat, held_out = world.data.scene, world.probability.ravel(), trust.held_out
    assert held_out is not None
    overview = folder / "overview.png"
    shown = Scene(scene.cube[list(world.data.rgb)], scene.valid)
    backdrop = Backdrop(false_colour(shown), scene.shape, ("850 nm", "660 nm", "560 nm"))
    judged = np.where(np.arange(world.labels.size) % 3, 1.0, 0.0)
    judged[:5] = np.nan
    marks = Marks(world.labels, judged)
    draw_map(overview, backdrop, world.probability > 0.5, title="class 2", marks=marks)
    truth = Truth(world.data.truth == 2, world.data.truth > 0)
    draw_errors(folder / "errors.png", world.probability > 0.5, truth)
    labels = world.spectra[world.labels]
    labels[:2] = world.spectra[np.flatnonzero(world.data.truth == 3)[:2]]
    wavelengths = np.concatenate([np.linspace(420, 1340, 30), np.linspace(1460, 1780, 18)])
    spectra = draw_spectra(labels, world.spectra, wavelengths=wavelengths)
    scores = draw_scores(flat[world.labels[60:]], flat)
    thresholds = draw_thresholds(
        held_out.curve, threshold=0.5, suggested=held_out.suggested.threshold
    )
    small = world.probability[::2, ::2]
    mapped = (small > 0.5).astype(float)
    mapped[0, :5] = np.nan
    panels = (
        Picture("Probability of the class", draw_probability(small)),
        Picture("How like the labels", draw_novelty(mapped, small > 0.9, small < 0.001)),
        Picture("Where a second method differs", draw_disagreement(mapped, mapped[::-1], "sam")),
    )
    return {
        "maps": (Picture("The map over the scene", overview.read_bytes()),),
        "panels": panels,
        "errors": (Picture("Where it is wrong", (folder / "errors.png").read_bytes()),),
        "spectra": (Picture("Labels unlike the others may be mistakes", spectra),),
        "curves": (
            Picture("Probability of held-out labels and unlabeled pixels", scores),
            Picture("What other thresholds would find and map", thresholds),
        ),
    }


def make_report(folder: Path, *, height: int = 60, width: int = 80) -> Report:
    rng = np.random.default_rng(0)
    world = make_world(height, width, rng)
    flat = world.probability.ravel()
    trust = assess(
        flat[world.labels[60:]],
        flat,
        Circumstances(
            places=find_places(world.labels, (height, width), unlike=0.02),
            opinions=[Opinion("matched-filter", 0.4, 0.6)],
            priors=[Prior("km2", 0.31, 0.24, 0.38)],
            votes=count_votes(np.clip(flat + rng.normal(0, 0.08, (3, flat.size)), 0, 1)),
        ),
        rng=rng,
    )
    pictures: dict[str, Any] = {**make_pictures(world, trust, folder)}
    return Report(
        title="Class 2 in valley-2024.tif",
        summary=summarise(trust),
        verdict=judge(trust),
        facts={
            "Scene": f"/data/scenes/2024/valley-2024.tif, {height} × {width} pixels, 48 bands",
            "Labels": "positives.gpkg, 100 labels, 40 of them left out in turn",
            "Threshold": 0.5,
            "Date": "2026-08-01 12:00",
            "Versions": "thonecls 0.1.0, torch 2.13.0, numpy 2.4.6, Python 3.11.9",
        },
        command="thonecls train /data/scenes/2024/valley-2024.tif positives.gpkg "
        "--out runs/valley-2024 --folds 4 --label 'class 2'",
        trust=trust,
        scores=evaluate(world.probability, world.data.truth == 2, ~world.positives),
        settings={"loss": "taylor", "order": 2, "rate": 1e-4, "settle": None, "augment": True},
        warnings=("3 labels lie on one pixel and count once.",),
        area="4.3 ha",
        verified=Verified(
            verify(
                np.array([0, 0, 1, 2, 3, 3]),
                np.array([1.0, 1.0, 0.0, 0.0, 0.0, np.nan]),
                np.array([900, 100, 200, 3600, 0]),
                rng=rng,
            ),
            48.0,
        ),
        **pictures,
    )


@pytest.fixture(scope="module")
def full(tmp_path_factory: pytest.TempPathFactory) -> Report:
    return make_report(tmp_path_factory.mktemp("page"))


BARE = Report("A map", "The map covers 6 % of the scene.", Verdict("check"))


class Page(HTMLParser):
    """Balanced tags, the ids in their order, and all attributes."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.attributes: list[tuple[str, str, str]] = []
        self.tags: set[str] = set()
        self.feed(html)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_startendtag(tag, attrs)
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        self.ids += [value or "" for name, value in attrs if name == "id"]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_a_full_page_has_every_section_in_order(full: Report) -> None:
    assert tuple(Page(render(full)).ids) == SECTIONS


def test_what_is_not_known_is_left_out() -> None:
    html = render(BARE)
    assert Page(html).ids == ["summary"]
    assert "The map covers 6\N{NO-BREAK SPACE}% of the scene." in html
    assert "None" not in html


@pytest.mark.parametrize("name", SECTIONS[1:])
def test_each_section_can_be_absent(full: Report, name: str) -> None:
    field = {"map": "maps", "truth": "scores"}.get(name, name)
    page = Page(render(replace(full, **{field: getattr(BARE, field)})))
    assert page.ids == [section for section in SECTIONS if section != name]


def test_the_page_needs_no_other_file_and_no_script(full: Report) -> None:
    page = Page(render(full))
    for tag, name, value in page.attributes:
        if name in ("src", "href", "srcset", "action", "data"):
            assert value.startswith("data:image/png;base64,"), (tag, name, value[:40])
        assert not name.startswith("on")
    assert not page.tags & {"script", "link", "iframe", "object", "base"}
    html = re.sub(r"data:image/png;base64,[\w+/=]+", "", render(full))
    assert not re.search(r"https?:|//|@import|url\(", html)


def test_text_from_files_cannot_become_markup(full: Report) -> None:
    evil = "<script>alert('&\"')</script>"
    report = replace(
        full,
        title=evil,
        summary=evil,
        verdict=Verdict("poor", (evil,)),
        facts={evil: evil},
        command=evil,
        maps=(Picture(evil, PNG),),
        settings={evil: [evil]},
        warnings=(evil,),
    )
    page = render(report)
    assert "<script" not in page
    assert page.count("&lt;script&gt;") == 12
    assert "script" not in Page(page).tags


@pytest.mark.parametrize(
    ("level", "word"),
    [("good", "Looks sound"), ("check", "Check before use"), ("poor", "Do not rely on it")],
)
def test_the_verdict_is_said_in_words_too(level: str, word: str) -> None:
    html = render(replace(BARE, verdict=Verdict(level, ("Because.",))))  # type: ignore[arg-type]
    assert word in html
    assert f'class="verdict {level}"' in html
    assert html.index(word) < html.index("Because.")


def test_the_numbers_stand_beside_their_meaning(full: Report) -> None:
    html = render(full)
    assert full.trust is not None
    assert full.trust.held_out is not None
    for name in ("Recall", "Precision", "F1", "False alarms", "AUC", "puF", "Mapped", "Prevalence"):
        assert f"<dt>{name}</dt>" in html
    assert "of 40 labels are found by models that did not learn from them" in html
    assert "matched-filter maps 40" in html
    assert "has a spectrum unlike that of any label" in html
    assert "<dt>Area</dt>" in html
    assert "Mapped share ÷ recall" in html
    assert full.trust.held_out.suggested.reason in html.replace("\N{NO-BREAK SPACE}", " ")


def test_three_reasons_stand_beside_the_verdict_and_the_rest_below(full: Report) -> None:
    reasons = tuple(f"Reason {i}." for i in range(5))
    html = render(replace(full, verdict=Verdict("check", reasons), warnings=()))
    below = html.index('id="warnings"')
    assert [html.index(reason) < below for reason in reasons] == [True] * 3 + [False] * 2


def test_the_gravest_reason_comes_first_and_gives_the_step() -> None:
    trust = assess(np.linspace(0.1, 0.6, 15), np.linspace(0, 1, 500), rng=np.random.default_rng(0))
    assert {caution.level for caution in trust.cautions} == {"poor", "check"}
    gravest = next(caution for caution in trust.cautions if caution.level == "poor")
    assert judge(trust).reasons[0] == gravest.text
    assert judge(trust).step == gravest.step


def test_checked_points_speak_of_hectares_where_they_are_known(full: Report) -> None:
    assert full.verified is not None
    found = replace(full.verified, hectares=200.0)
    words = summarise_points(found)
    assert f"the class covers {hectares(200 * found.found.area.value, 2)} (" in words
    recall = found.found.recall
    assert recall.low is not None
    assert recall.low < 0.4  # so little is known that one number would mislead
    assert f"finds between {100 * recall.low:.0f} and 100 % of the class" in words
    assert "ha" not in summarise_points(replace(found, hectares=None)).split("covers")[1]
    assert "% of the scene" in summarise_points(replace(found, hectares=None))


def test_without_held_out_labels_only_what_is_known_is_shown(full: Report) -> None:
    trust = assess(None, np.linspace(0, 1, 500), rng=np.random.default_rng(0), bootstraps=20)
    bare = replace(full, trust=trust, summary=summarise(trust), verdict=judge(trust), verified=None)
    html = render(bare)
    assert "<dt>Mapped</dt>" in html
    assert "<dt>Recall</dt>" not in html
    assert "not known" in html
    Page(html)


def test_a_quiet_report_says_so(full: Report) -> None:
    assert full.trust is not None
    verdict = judge(replace(full.trust, cautions=()))
    assert verdict.level == "good"
    assert "another method makes about the same map" in verdict.reasons[0]


def test_confusion_is_recovered_from_the_scores() -> None:
    rng = np.random.default_rng(0)
    probability, truth = rng.random((30, 40)), rng.random((30, 40)) < 0.2
    found = confusion(evaluate(probability, truth))
    mapped = probability > 0.5
    assert found.hits == (mapped & truth).sum()
    assert found.misses == (~mapped & truth).sum()
    assert found.false_alarms == (mapped & ~truth).sum()
    assert found.rejections == (~mapped & ~truth).sum()


def test_json_holds_all_but_the_pictures(full: Report) -> None:
    scores = Scores(50.0, 50.0, 50.0, float("nan"), 50.0, pixels=4, positives=2)
    settings = {"path": Path("a"), "n": np.int64(3), "x": np.float32(0.5), "pair": (1, None)}
    found = as_json(replace(full, scores=scores, settings=settings))
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    assert not {"maps", "spectra", "curves"} & set(found)
    assert found["settings"] == {"path": "a", "n": 3, "x": 0.5, "pair": [1, None]}
    assert found["scores"]["auc"] is None
    assert found["confusion"]["hits"] == 1
    assert found["trust"]["held_out"]["labels"] == 40
    assert found["trust"]["level"] == found["verdict"]["level"]
    assert as_json(BARE)["trust"] is None


def test_odd_labels_are_found_and_usual_ones_are_not() -> None:
    rng = np.random.default_rng(0)
    labels = np.sin(np.linspace(0, 3, 40)) + rng.normal(0, 0.05, (60, 40))
    assert find_odd(labels).size == 0
    labels[[7, 21]] = np.cos(np.linspace(0, 3, 40)) * [[1], [2]]
    assert find_odd(labels).tolist() == [21, 7]
    assert find_odd(labels[:3]).size == 0
    assert find_odd(np.ones((9, 4))).size == 0


def test_figures_are_drawn_from_little_data() -> None:
    one = np.array([0.5])
    spectra = np.ones((1, 3))
    for png in (
        draw_scores(None, one),
        draw_scores(one, one, threshold=0.2),
        draw_spectra(spectra, spectra),
        draw_spectra(np.ones((1, 1)), np.ones((2, 1)), wavelengths=np.array([500.0])),
    ):
        assert png.startswith(PNG)


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("kind", ["full", "long"])
def test_nothing_runs_over_the_side(full: Report, tmp_path: Path, width: int, kind: str) -> None:
    """In a browser: neither the page nor a picture is wider than the window."""
    report = full
    if kind == "long":
        name = "/" + "a_very_long_name" * 12
        report = replace(full, title=name, facts={name: name}, command=name, settings={name: name})
    browser = program("chromium", "chromium-browser", "google-chrome")
    assert measure(browser, render(report), width, tmp_path) == [width, width]


@pytest.mark.parametrize("size", [(1280, 800), (390, 844)])
def test_the_first_screen_tells_the_verdict_and_shows_the_map(
    full: Report, tmp_path: Path, size: tuple[int, int]
) -> None:
    """In a browser: what to do next can be read without scrolling, and the map can be seen."""
    browser = program("chromium", "chromium-browser", "google-chrome")
    short = replace(full, verdict=Verdict("check", ("A reason.",), "In words.", "A step."))
    script = "['.step', '#map img'].map(s => document.querySelector(s).getBoundingClientRect())"
    found = ask(browser, render(short), size, f"{script}.flatMap(r => [r.bottom, r.top])", tmp_path)
    assert found[0] < size[1]
    assert found[3] < size[1] - 100


def measure(browser: str, html: str, width: int, folder: Path) -> list[int]:
    """The width of the window and of what is laid out in it."""
    widest = """[innerWidth, Math.max(document.documentElement.scrollWidth,
         ...[...document.images].map(i => Math.ceil(i.getBoundingClientRect().right)))]"""
    return ask(browser, html, (width, 800), widest, folder)


def ask(browser: str, html: str, size: tuple[int, int], what: str, folder: Path) -> list[int]:
    """Whole numbers that a headless browser finds in a page; what: a list in its language.

    The window of a headless browser has a least width: the page is put in a frame instead.
    """
    inner = html.replace("default-src 'none'", "default-src 'none'; script-src 'unsafe-inline'")
    script = f"<script>onload = () => parent.postMessage({what}, '*')</script>"
    (folder / "page.html").write_text(inner.replace("</body>", f"{script}</body>"), "utf-8")
    frame = f"""<!doctype html><title>waiting</title>
        <script>onmessage = e =>
            document.title = 'found ' + e.data.map(Math.round).join(' ')</script>
        <iframe src="page.html" style="width:{size[0]}px;height:{size[1]}px;border:0"></iframe>"""
    (folder / "frame.html").write_text(frame, "utf-8")
    command = [browser, *HEADLESS, f"--user-data-dir={folder / 'profile'}"]
    command += ["--window-size=1400,900"]
    command += ["--virtual-time-budget=5000", "--dump-dom", (folder / "frame.html").as_uri()]
    dom = subprocess.run(
        command, capture_output=True, encoding="utf-8", timeout=120, check=True
    ).stdout
    found = re.search(r"found ([\d -]+)<", dom)
    assert found, dom[:300]
    return [int(number) for number in found[1].split()]
