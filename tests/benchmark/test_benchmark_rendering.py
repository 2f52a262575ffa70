"""Tables and figures of the benchmark, from records that are made up."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.image import imread

from thonecls.benchmark import STUDIES, Cell, Study, cells_of, read_results
from thonecls.benchmark.figures import draw_data, draw_study_curves, draw_study_maps
from thonecls.benchmark.records import Results, append_record
from thonecls.benchmark.tables import (
    Entry,
    Row,
    Table,
    as_csv,
    as_html,
    as_latex,
    as_markdown,
    build_table,
)
from thonecls.datasets import Dataset, synthetic

PLACES = (("indian-pines", 2), ("indian-pines", 11))
SMALL = Study(
    "Made up", PLACES, {"nnPU": {"method": "nnpu", "prior": "paper"}, "T-HOneCls": {}}, ("f1",)
)
WIDE = STUDIES["table-ip-pu"]


def facts(cell: Cell, f1: float = 90.0, epochs: int = 8, **more: Any) -> dict[str, Any]:
    names = ("precision", "recall", "f1", "auc", "accuracy")
    curve = np.linspace(0, f1, epochs).tolist()
    return {
        "cell": cell.as_dict(),
        "scores": dict.fromkeys(names, f1),
        "curves": {"f1": curve, "loss": curve[::-1], "positive": [v / 2 for v in curve]},
        "machine": {"processor": "Abacus 7", "cores": 2, "threads": 1, "system": "Linux"},
        "versions": {"python": "3.11.2", "torch": "2.13.0"},
        "date": f"2026-10-0{cell.seed + 1}T12:00:00+00:00",
        **more,
    }


def run(
    folder: Path,
    study: Study,
    score: Callable[[Cell], float | None],
    seeds: range = range(2),
    change: dict[str, Any] | None = None,
) -> Results:
    """Results in which every cell has the F1 that `score` gives; None: it has not been run."""
    for cell in cells_of(study, seeds=seeds, change=change):
        f1 = score(cell)
        if f1 is not None:
            append_record(folder, facts(cell, f1, epochs=6 + 3 * cell.seed))
    return read_results(folder)


def build(name: str, study: Study, results: Results, seeds: range = range(2)) -> Table:
    return build_table(name, study, results, seeds=seeds, change={})


def row(table: Table, begins: str, metric: str = "f1") -> Row:
    return next(r for r in table.rows if r.name.startswith(begins) and r.metric == metric)


def line(text: str, *parts: str) -> str:
    """The first line that has all the parts."""
    return next(x for x in text.splitlines() if all(part in x for part in parts))


# Values


def test_an_entry_has_mean_spread_and_difference(tmp_path: Path) -> None:
    results = run(tmp_path, SMALL, lambda cell: 90.0 + 2 * cell.seed)
    entry = row(build("methods", SMALL, results), "Indian Pines 2,").entries["T-HOneCls"]
    assert entry.ours == (90.0, 92.0)
    assert (entry.n, entry.mean) == (2, 91.0)
    assert entry.std == pytest.approx(2**0.5)  # of a sample
    assert entry.paper == (93.4, 0.5)
    assert entry.difference == pytest.approx(-2.4)


def test_what_is_missing_is_none() -> None:
    empty, alone = Entry(None), Entry(None, (50.0,))
    assert (empty.mean, empty.std, empty.n, empty.difference) == (None, None, 0, None)
    assert (alone.mean, alone.std, alone.n, alone.difference) == (50.0, None, 1, None)


def test_a_score_that_is_not_defined_does_not_count(tmp_path: Path) -> None:
    study = replace(SMALL, metrics=("auc",))
    for cell in cells_of(study, seeds=[0, 1]):
        record = facts(cell)
        record["scores"]["auc"] = float("nan") if cell.seed else 80.0
        append_record(tmp_path, record)
    table = build("methods", study, read_results(tmp_path))
    assert table.rows[0].entries["nnPU"].ours == (80.0,)


def test_the_mean_over_classes_needs_every_class_of_a_seed(tmp_path: Path) -> None:
    def score(cell: Cell) -> float | None:
        missing = cell.target == 11 and (cell.method == "nnpu" or cell.seed == 1)
        return None if missing else float(cell.target * 5 + cell.seed)

    macro = row(build("methods", SMALL, run(tmp_path, SMALL, score)), "Indian Pines, mean of 2")
    assert macro.entries["nnPU"].ours == ()
    assert macro.entries["T-HOneCls"].ours == ((10 + 55) / 2,)


def test_the_papers_mean_stands_only_beside_all_its_classes() -> None:
    nothing = Results({}, [])
    whole = row(build("table-honghu", STUDIES["table-honghu"], nothing), "WHU-Hi-HongHu, mean of 5")
    assert whole.entries["T-HOneCls"].paper == (97.39, None)
    part = replace(STUDIES["table-honghu"], places=STUDIES["table-honghu"].places[:3])
    some = row(build("table-honghu", part, nothing), "WHU-Hi-HongHu, mean of 3")
    assert some.entries["T-HOneCls"].paper is None


@pytest.mark.parametrize(
    ("study", "place", "label", "mean"),
    [
        ("table-ip-pu", "Indian Pines 2, Corn-notill", "T-HOneCls", 93.40),
        ("table-ip-pu", "Indian Pines 2, Corn-notill", "nnPU", 42.30),
        ("table-ip-pu", "Indian Pines 2, Corn-notill", "variational", 8.44),  # called vPU there
        ("kl-teacher", "WHU-Hi-HongHu 4, Cotton", "taylor+ema+kl, order 2", 98.15),
        ("beta", "WHU-Hi-HongHu 4, Cotton", "beta=1.0", 98.65),
        ("prior", "WHU-Hi-HongHu 6, Rape", "oc true prior", 98.73),
        ("prior", "WHU-Hi-HongHu 6, Rape", "t-honecls", 97.81),
        ("order", "WHU-Hi-HongHu 4, Cotton", "order 2", 98.15),  # what the main tables ran
        ("order", "WHU-Hi-HongHu 4, Cotton", "order 5", None),
        ("labels", "WHU-Hi-HongHu 4, Cotton", "T-HOneCls, 40 positives", None),
        ("labels", "WHU-Hi-HongHu 4, Cotton", "variational, 100 positives", 1.86),
        ("methods", "Indian Pines 2, Corn-notill", "nnPU, true prior", None),
    ],
)
def test_the_papers_figures_stand_where_they_belong(
    study: str, place: str, label: str, mean: float | None
) -> None:
    table = build(study, STUDIES[study], Results({}, []))
    paper = row(table, place).entries[label].paper
    assert (paper and paper.mean) == mean


def test_every_study_has_a_table_before_anything_is_run() -> None:
    for name, study in STUDIES.items():
        table = build(name, study, Results({}, []), seeds=range(1))
        text = as_markdown(table) + as_latex(table) + as_csv(table) + as_html([table], [])
        assert not re.search(r"\b(nan|None)\b", text)
        assert f"0 of {len(set(cells_of(study, seeds=range(1))))} cells are run." in table.note


def test_the_note_tells_what_the_records_tell(tmp_path: Path) -> None:
    change = {"preset": "fast", "width": 0.5}
    run(tmp_path, SMALL, lambda cell: 80.0 if cell.target == 2 else None, change=change)
    failed, warned = cells_of(SMALL, seeds=[0], change=change)[2:]
    append_record(tmp_path, {"cell": failed.as_dict(), "error": "OSError: no room"})
    append_record(tmp_path, facts(warned, warning="the map is uninformative"))
    results = read_results(tmp_path)
    note = build_table("methods", SMALL, results, seeds=range(2), change=change).note
    for part in (
        "5 of 8 cells are run, 1 failed.",
        "1 of the maps",
        "Seeds 0, 1.",
        "Preset fast.",
        "Protocol paper.",
        "Changed in all cells: width=0.5.",
        "Indian Pines, AVIRIS 1992",
        "Abacus 7, 2 cores, Linux, 1 thread for each cell.",
        "Python 3.11.2, torch 2.13.0.",
        "2026-10-01 to 2026-10-02.",
    ):
        assert part in note


# Tables as text


def test_a_wide_table_has_three_lines_for_a_class(tmp_path: Path) -> None:
    scores = {"t-honecls": 95.0, "oc": 30.0, "mse": 95.0}
    results = run(
        tmp_path, WIDE, lambda c: scores[c.method] + c.seed if c.method in scores else None
    )
    lines = as_markdown(build("table-ip-pu", WIDE, results)).splitlines()
    start = next(i for i, x in enumerate(lines) if x.startswith("| Indian Pines 2, Corn-notill"))
    paper, ours, difference = ([f.strip() for f in x.split("|")[2:-1]] for x in lines[start:][:3])
    assert (paper[0], paper[1], paper[-1]) == ("paper", "42.30(0.73)", "**93.40(0.50)**")
    # Blank where nothing was run; both of the best are bold.
    assert ours == [
        "ours, n=2", "", "30.50(0.71)", "**95.50(0.71)**", "", "", "", "", "", "**95.50(0.71)**"
    ]  # fmt: skip
    assert (difference[0], difference[1], difference[2]) == ("difference", "", "-12.64")
    assert difference[-1] == "+2.10"


def test_different_numbers_of_seeds_are_told_in_each_field(tmp_path: Path) -> None:
    results = run(tmp_path, WIDE, lambda c: None if c.method == "oc" and c.seed else 50.0)
    ours = line(as_markdown(build("table-ip-pu", WIDE, results)), "| ours |")
    assert "50.00(0.00) n=2" in ours
    assert "50.00 n=1" in ours


def test_one_figure_alone_is_not_the_best(tmp_path: Path) -> None:
    results = run(tmp_path, WIDE, lambda c: 50.0 if c.method == "oc" else None)
    assert "**" not in line(as_markdown(build("table-ip-pu", WIDE, results)), "| ours")


def test_settings_have_a_line_each(tmp_path: Path) -> None:
    study = STUDIES["beta"]
    results = run(tmp_path, study, lambda c: 98.65 if c.method == "taylor" else None)
    table = build("beta", study, results)
    text = as_markdown(table)
    assert line(text, "class") == "| class | setting | paper | ours | n | difference |"
    zero = "| WHU-Hi-HongHu 4, Cotton | beta=0 | 97.51(0.68) | 98.65(0.00) | 2 | +1.14 |"
    assert line(text, "beta=0 ") == zero
    assert line(text, "beta=1.0") == "|  | beta=1.0 | **98.65(0.23)** |  |  |  |"


def test_several_metrics_are_told_apart(tmp_path: Path) -> None:
    study = STUDIES["precision-recall"]
    text = as_markdown(build("precision-recall", study, run(tmp_path, study, lambda c: 50.0)))
    assert "99.34" in line(text, "WHU-Hi-HongHu 4, Cotton: precision | paper")
    assert "99.54" in line(text, "WHU-Hi-HongHu 4, Cotton: recall | paper")


AWKWARD = r"a_b & 50% <x> | $\{#^~"


def test_latex_and_markdown_escape_what_they_would_read_otherwise() -> None:
    table = build("x", replace(SMALL, columns={AWKWARD: {}, "b": {}}), Results({}, []))
    escaped = (
        r"a\_b \& 50\% \textless{}x\textgreater{} | "
        r"\$\textbackslash{}\{\#\textasciicircum{}\textasciitilde{}"
    )
    assert escaped in as_latex(table)
    assert r"a\_b & 50% \<x\> \| $\\{#^~" in as_markdown(table)


def test_latex_has_as_many_fields_in_every_line(tmp_path: Path) -> None:
    for name in ("table-ip-pu", "beta"):
        text = as_latex(build(name, STUDIES[name], Results({}, [])))
        columns = re.search(r"\{tabular\}\{(l+r+)\}", text)
        assert columns
        counts = {x.count("&") for x in text.splitlines() if x.endswith(r"\\")}
        assert counts == {len(columns[1]) - 1}
        for opened in ("table", "tabular"):
            assert text.count(f"begin{{{opened}") == text.count(f"end{{{opened}") > 0


def test_latex_shows_a_minus(tmp_path: Path) -> None:
    results = run(tmp_path, SMALL, lambda c: 91.0)
    assert "& $-2.40$ " in as_latex(build("methods", SMALL, results))


def test_csv_reads_back(tmp_path: Path) -> None:
    results = run(tmp_path, SMALL, lambda c: 90.0 + c.seed if c.method == "nnpu" else None)
    lines = list(csv.DictReader(io.StringIO(as_csv(build("methods", SMALL, results)))))
    assert len(lines) == 3 * 2  # two classes and their mean, two columns
    assert lines[0] == {
        "place": "Indian Pines 2, Corn-notill",
        "metric": "f1",
        "column": "nnPU",
        "paper_mean": "42.30",
        "paper_std": "0.73",
        "ours_mean": "90.50",
        "ours_std": "0.71",
        "n": "2",
        "difference": "48.20",
    }
    assert [lines[1][name] for name in ("ours_mean", "ours_std", "n", "difference")] == [""] * 4


# The page


class Reader(HTMLParser):
    """Checks that tags close in order; collects addresses and text."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.addresses: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.addresses += [value or "" for name, value in attrs if name in ("src", "href")]
        if tag not in ("meta", "img"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def test_the_page_is_whole_and_escapes_labels(tmp_path: Path) -> None:
    study = replace(SMALL, columns={"<script>a & b": {}, "T-HOneCls": {}}, curves=("f1",))
    results = run(tmp_path, study, lambda cell: 50.0)
    picture = tmp_path / "made-up.png"
    assert draw_study_curves("x", study, results, picture, seeds=range(2), change={})
    page = as_html([build("x", study, results)], [picture])
    reader = Reader()
    reader.feed(page)
    assert not reader.open
    assert "<script" not in page
    assert "<script>a & b" in reader.text
    assert [address[:22] for address in reader.addresses] == ["data:image/png;base64,"]
    assert "http:" not in page
    assert "https:" not in page


# EpochMetrics


def colours(path: Path) -> int:
    """How many colours a picture has."""
    pixels = imread(path)[..., :3].reshape(-1, 3)
    assert pixels.std() > 0.02
    return len(np.unique(pixels, axis=0))


@pytest.mark.parametrize("name", ["order", "kl-teacher", "labels"])
def test_curves_are_drawn_with_runs_of_different_length(tmp_path: Path, name: str) -> None:
    study = replace(STUDIES[name], places=(("indian-pines", 2),))
    results = run(tmp_path, study, lambda cell: 60.0 + cell.seed)
    path = tmp_path / "curves.png"
    assert draw_study_curves(name, study, results, path, seeds=range(2), change={})
    assert colours(path) > 50


def test_curves_of_some_columns_and_none_of_a_method_without_network(tmp_path: Path) -> None:
    study = replace(SMALL, columns={"SAM": {"method": "sam"}, "T-HOneCls": {}}, curves=("f1",))
    path = tmp_path / "curves.png"

    def draw() -> bool:
        results = read_results(tmp_path)
        return draw_study_curves("x", study, results, path, seeds=[0], change={})

    sam, ours, *_ = cells_of(study, seeds=[0])
    record = facts(sam)
    del record["curves"]
    append_record(tmp_path, record)
    assert not draw()
    assert not path.exists()
    append_record(tmp_path, facts(ours, epochs=1))
    assert draw()
    assert colours(path) > 10


@pytest.fixture
def fields(monkeypatch: pytest.MonkeyPatch) -> Dataset:
    """A small scene in the place of every dataset."""
    data = synthetic(height=40, width=32, bands=6, classes=3)
    data.truth[:5] = 0
    monkeypatch.setattr("thonecls.benchmark.maps.load_dataset", lambda name, root: data)
    return data


def write_map(folder: Path, cell: Cell, probability: np.ndarray) -> None:
    path = folder / "maps" / f"{cell.id}.npy"
    path.parent.mkdir(exist_ok=True)
    np.save(path, np.rint(254 * probability).astype(np.uint8))


def test_maps_show_best_and_median_of_what_was_run(
    tmp_path: Path, fields: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = replace(SMALL, places=(("indian-pines", 2), ("indian-pines", 3)), maps=True)
    change = {"positives": 10, "unlabeled": 50}
    run(tmp_path, study, lambda c: 10.0 * c.seed if c.target == 2 else None, range(4), change)
    for cell in cells_of(study, seeds=range(3), change=change):  # the fourth has lost its maps
        write_map(tmp_path, cell, (fields.truth == cell.target).astype(float))
    titles: list[str] = []
    monkeypatch.setattr(
        "matplotlib.axes.Axes.set_title", lambda self, title, **kwargs: titles.append(title)
    )
    path = tmp_path / "maps.png"
    assert draw_study_maps(
        study, read_results(tmp_path), tmp_path, tmp_path, path, seeds=range(4), change=change
    )
    runs = ("best, F1 20.00", "median, F1 10.00")
    assert titles[2:] == [f"{label}\n{which}" for label in SMALL.columns for which in runs]
    assert colours(path) > 20


def test_errors_are_coloured_as_in_the_report(tmp_path: Path, fields: Dataset) -> None:
    from thonecls.benchmark import maps
    from thonecls.report.plots import FALSE, HIT, MISSED, NODATA, QUIET

    cell = Cell("indian-pines", 2, positives=10, settings=(("unlabeled", 50),))
    truth = fields.truth == 2
    shown = truth.astype(np.float32)
    (rows, columns), (others, beside) = np.nonzero(truth), np.nonzero(fields.truth == 1)
    wrong = [(rows[i], columns[i]) for i in range(len(rows))][:20]
    for place in wrong:
        shown[place] = 0
    shown[others[0], beside[0]] = 1
    kinds = [list(maps.KINDS)[k] for k in maps._errors(fields, cell, shown).flat]
    counts = {colour: kinds.count(colour) for colour in maps.KINDS}
    labels = 10
    assert counts[NODATA] == (fields.truth == 0).sum() + labels
    assert counts[FALSE] == 1
    assert counts[HIT] + counts[MISSED] == truth.sum() - labels
    assert 20 - labels <= counts[MISSED] <= 20
    assert counts[QUIET] == ((fields.truth > 0) & ~truth).sum() - 1


def test_no_maps_no_figure(tmp_path: Path, fields: Dataset) -> None:
    results = run(tmp_path, SMALL, lambda cell: 50.0)  # recorded, but their maps are gone
    path = tmp_path / "maps.png"
    assert not draw_study_maps(SMALL, results, tmp_path, tmp_path, path, seeds=[0], change={})
    assert not path.exists()


@pytest.mark.parametrize(("height", "width", "classes"), [(30, 40, 2), (60, 20, 22)])
def test_data_are_drawn(tmp_path: Path, height: int, width: int, classes: int) -> None:
    data = synthetic(height=height, width=width, bands=6, classes=classes)
    assert draw_data(data, tmp_path / "data.png")
    assert colours(tmp_path / "data.png") > 100


def test_data_without_a_class_are_not_drawn(tmp_path: Path) -> None:
    data = synthetic(height=8, width=8, bands=3, classes=2)
    assert not draw_data(replace(data, truth=np.zeros_like(data.truth)), tmp_path / "data.png")
    assert not (tmp_path / "data.png").exists()
