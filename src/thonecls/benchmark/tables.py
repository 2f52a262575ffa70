"""Our results beside the paper's: entries and rows, as Markdown, LaTeX, CSV and HTML."""

from __future__ import annotations

import base64
import csv
import io
import re
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from math import isfinite
from pathlib import Path
from typing import Any, NamedTuple

from jinja2 import Environment

from thonecls.benchmark.paper import PAPER_PRIORS, Figure, in_ablation, in_tables
from thonecls.benchmark.plan import Cell, config_of
from thonecls.benchmark.records import Record, Results
from thonecls.benchmark.studies import Study, cells_of
from thonecls.benchmark.targets import ALL, Place, class_name, data_of, place_name, short_title

METRIC_NAMES = {"f1": "F1", "auc": "AUC"}  # the others are called as in `Scores`
FEW = 3  # places or columns up to which a table has one line for each label

Runs = dict[tuple[Place, str], dict[int, Record]]  # by place and label, then by seed


@dataclass(frozen=True)
class Entry:
    """What the paper reports, if it does, and what our seeds gave; in percent."""

    paper: Figure | None
    ours: tuple[float, ...] = ()

    @property
    def n(self) -> int:
        return len(self.ours)

    @property
    def mean(self) -> float | None:
        return statistics.fmean(self.ours) if self.ours else None

    @property
    def std(self) -> float | None:
        """Of a sample (ddof 1); None for fewer than two seeds."""
        return statistics.stdev(self.ours) if self.n > 1 else None

    @property
    def difference(self) -> float | None:
        """Ours less the paper's; None where either is missing."""
        if self.mean is None or self.paper is None:
            return None
        return self.mean - self.paper.mean


@dataclass(frozen=True)
class Row:
    """A place, or the mean over a dataset's classes, with its entries by column label."""

    name: str
    metric: str
    entries: dict[str, Entry]


@dataclass(frozen=True)
class Table:
    """A study as a table.

    note: what the records say of seeds, settings, machines, versions and dates; turned: whether
    it has a line for each label rather than a column.
    """

    name: str
    title: str
    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    note: str
    turned: bool

    @property
    def metrics(self) -> list[str]:
        return list(dict.fromkeys(row.metric for row in self.rows))


def build_table(
    name: str,
    study: Study,
    results: Results,
    *,
    seeds: Sequence[int],
    change: dict[str, Any] | None = None,
) -> Table:
    """The table of a study, as far as it has been run; seeds, change: as for `cells_of`.

    A dataset with several classes has a row for their mean: over the seeds of which every class
    has been run. What is missing is an entry without figures, never a zero.
    """
    runs = runs_of(study, results, seeds=seeds, change=change)
    rows = []
    for dataset, targets in _targets(study).items():
        for target in targets:
            rows += [_row(name, study, runs, (dataset, target), m) for m in study.metrics]
        if len(targets) > 1:
            rows += [_macro(name, study, runs, dataset, m) for m in study.metrics]
    return Table(
        name,
        study.title,
        tuple(study.columns),
        tuple(rows),
        _note(study, results, cells_of(study, seeds=seeds, change=change), change or {}),
        turned=min(len(study.places), len(study.columns)) <= FEW,
    )


def runs_of(
    study: Study,
    results: Results,
    *,
    seeds: Sequence[int],
    change: dict[str, Any] | None = None,
) -> Runs:
    """The records of a study that are done; nothing is there for what has not been run."""
    runs: Runs = {}
    for place in study.places:
        for label, column in study.columns.items():
            one = replace(study, places=(place,), columns={label: column})
            found = [results.find(cell) for cell in cells_of(one, seeds=seeds, change=change)]
            runs[place, label] = {record.cell.seed: record for record in found if record}
    return runs


def metric_name(metric: str) -> str:
    """A metric as tables and axes name it."""
    return METRIC_NAMES.get(metric, metric)


def _targets(study: Study) -> dict[str, list[int]]:
    """The classes of each dataset, in the study's order."""
    targets: dict[str, list[int]] = {}
    for dataset, target in study.places:
        targets.setdefault(dataset, []).append(target)
    return targets


def _scores(runs: Mapping[int, Record], metric: str) -> dict[int, float]:
    """A score by seed; one that is not defined, such as the AUC of one class, is left out."""
    scores = {seed: float(record.facts["scores"][metric]) for seed, record in runs.items()}
    return {seed: score for seed, score in scores.items() if isfinite(score)}


def _row(name: str, study: Study, runs: Runs, place: Place, metric: str) -> Row:
    entries = {
        label: Entry(
            _paper(name, study.cell(place, label), class_name(place), label, metric),
            tuple(_scores(runs[place, label], metric).values()),
        )
        for label in study.columns
    }
    return Row(place_name(place), metric, entries)


def _macro(name: str, study: Study, runs: Runs, dataset: str, metric: str) -> Row:
    """The mean over a dataset's classes, seed by seed where all of them have been run.

    The paper's own is over all its classes of the dataset: it stands only beside the same ones.
    """
    targets = _targets(study)[dataset]
    whole = set(targets) == set(PAPER_PRIORS.get(dataset, ()))
    entries = {}
    for label in study.columns:
        scores = [_scores(runs[(dataset, target), label], metric) for target in targets]
        ours = tuple(
            statistics.fmean(of_class[seed] for of_class in scores)
            for seed in scores[0]
            if all(seed in of_class for of_class in scores)
        )
        cell = study.cell((dataset, targets[0]), label)
        paper = _paper(name, cell, "macro", label, metric, of_class=False) if whole else None
        entries[label] = Entry(paper, ours)
    return Row(f"{short_title(dataset)}, mean of {len(targets)} classes", metric, entries)


def _paper(
    study: str, cell: Cell, class_name: str, label: str, metric: str, *, of_class: bool = True
) -> Figure | None:
    """The paper's figure for a setting of this study, or for the method in its main tables.

    Those tell nothing of a column with other settings, labels or priors than theirs. What is
    changed in all columns alike leaves them, and stands in the note.
    """
    target = cell.target if of_class and cell.target != ALL else None
    own = in_ablation(study, cell.dataset, class_name, label) if metric == "f1" else None
    if own is not None or not _as_in_main_tables(cell):
        return own
    return in_tables(cell.dataset, target, cell.method, metric)


def _as_in_main_tables(cell: Cell) -> bool:
    bed = data_of(cell.dataset)
    prior = bed.prior if bed.methods[cell.method].needs_prior else None
    plain = Cell(cell.dataset, cell.target, cell.method, prior=prior)
    if bed.positives is not None:
        plain = replace(plain, positives=bed.positives)
    return replace(cell, settings=()) == plain and config_of(cell) == config_of(plain)


def _note(study: Study, results: Results, cells: list[Cell], change: dict[str, Any]) -> str:
    """What a reader must know of the figures, from their records."""
    cells = list(dict.fromkeys(cells))
    records = [record for cell in cells if (record := results.find(cell))]
    tried = sum(cell.id in results.records for cell in cells)
    warned = sum("warning" in record.facts for record in records)
    metrics = ", ".join(metric_name(metric) for metric in study.metrics)
    other = [f"{k}={v}" for k, v in change.items() if k not in ("preset", "protocol")]
    versions = [record.facts.get("versions", {}) for record in records]
    sentences = [
        _listed("version", (known["thonecls"] for known in versions if "thonecls" in known)),
        f"{metrics} in percent: mean(standard deviation) over n seeds; difference: ours - paper",
        f"{len(records)} of {len(cells)} cells are run"
        + (f", {tried - len(records)} failed" if tried > len(records) else ""),
        f"{warned} of the maps say nearly the same everywhere" if warned else "",
        _listed("seed", (record.cell.seed for record in records)),
        _listed("preset", (record.cell.preset for record in records)),
        _listed("protocol", (record.cell.protocol for record in records)),
        f"changed in all cells: {', '.join(other)}" if other else "",
        *_own_draws(records),
        *dict.fromkeys(data_of(dataset).title for dataset, _ in study.places),
        *_distinct(_machine(record.facts.get("machine", {})) for record in records),
        *_distinct(
            ", ".join(f"{name} {v}" for name, v in known.items() if name != "thonecls")
            for known in versions
        ),
        _listed("commit", (r.facts["commit"] for r in records if "commit" in r.facts)),
        " to ".join(_ends(record.facts.get("date", "")[:10] for record in records)),
    ]
    return " ".join(f"{s[0].upper()}{s[1:]}." for s in sentences if s)


def _own_draws(records: list[Record]) -> list[str]:
    """Where labels were drawn here although the paper took published ones."""
    drawn = {
        record.cell.dataset
        for record in records
        if record.cell.protocol == "paper"
        and data_of(record.cell.dataset).published
        and record.facts.get("split") == "drawn"
    }
    return [
        f"labels of {dataset} are drawn here, not the published ones" for dataset in sorted(drawn)
    ]


def _machine(facts: dict[str, Any]) -> str:
    if not facts:
        return ""
    of_all = f"{facts['processor']}, {facts['cores']} cores, {facts['system']}"
    return f"{of_all}, {facts['threads']} thread{'s' * (facts['threads'] != 1)} for each cell"


def _distinct(values: Iterable[Any]) -> list[str]:
    return [str(value) for value in sorted(set(values))]


def _listed(what: str, values: Iterable[Any]) -> str:
    """Such as "seeds 0, 1, 2"; nothing where there is none."""
    found = _distinct(values)
    return f"{what}{'s' if len(found) > 1 else ''} {', '.join(found)}" if found else ""


def _ends(values: Iterable[str]) -> list[str]:
    """First and last, once if they are the same."""
    found = sorted(set(filter(None, values)))
    return found if len(found) < 2 else [found[0], found[-1]]


__all__ = ["Entry", "Row", "Table", "as_csv", "as_html", "as_latex", "as_markdown", "build_table"]


class Text(NamedTuple):
    """What stands in one field of a table."""

    text: str
    bold: bool = False


Block = list[list[Text]]  # the lines of one row of the table
LATEX = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    **{sign: f"\\{sign}" for sign in "&%$#_{}"},
}


def as_markdown(table: Table, *, heading: bool = True) -> str:
    """A heading, a table and its note, as GitHub reads them."""
    header, blocks = _lay_out(table)
    lines = [
        [_markdown(name) for name in header],
        [":--"] * 2 + ["--:"] * (len(header) - 2),
        *([_markdown(*field) for field in line] for block in blocks for line in block),
    ]
    body = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    title = f"### {_markdown(table.title)}\n\n" if heading else ""
    return f"{title}{body}\n\n{_markdown(table.note)}\n"


def as_latex(table: Table) -> str:
    """A floating table; it needs the packages booktabs and graphicx.

    One with many columns spans the page, scaled to its width.
    """
    header, blocks = _lay_out(table)
    bodies = [
        "\n".join(f"{' & '.join(_latex(*field) for field in line)} \\\\" for line in block)
        for block in blocks
    ]
    star = "" if table.turned else "*"
    parts = [
        f"\\begin{{table{star}}}[htb]",
        "\\centering",
        f"\\caption{{{_latex(table.title)}}}",
        f"\\label{{tab:{table.name}}}",
        "" if table.turned else "\\resizebox{\\textwidth}{!}{%",
        f"\\begin{{tabular}}{{ll{'r' * (len(header) - 2)}}}",
        "\\toprule",
        f"{' & '.join(_latex(name) for name in header)} \\\\",
        "\\midrule",
        "\n\\addlinespace\n".join(bodies),
        "\\bottomrule",
        "\\end{tabular}" + ("" if table.turned else "}"),
        f"\n\\smallskip\\parbox{{\\linewidth}}{{\\footnotesize {_latex(table.note)}}}",
        f"\\end{{table{star}}}",
    ]
    return "\n".join(part for part in parts if part) + "\n"


def as_csv(table: Table) -> str:
    """One line for each place, metric and column; blank where there is no figure."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    figures = ("paper_mean", "paper_std", "ours_mean", "ours_std", "n", "difference")
    writer.writerow(("place", "metric", "column", *figures))
    for row in table.rows:
        for label, entry in row.entries.items():
            paper = entry.paper or (None, None)
            writer.writerow(
                (
                    row.name,
                    row.metric,
                    label,
                    *(_number(value) for value in (*paper, entry.mean, entry.std)),
                    entry.n or "",
                    _number(entry.difference),
                )
            )
    return text.getvalue()


def as_html(tables: Sequence[Table], figures: Sequence[Path]) -> str:
    """One page that needs no other file: the tables, and the figures (PNG files) inside it."""
    template = (files("thonecls.benchmark") / "page.html").read_text(encoding="utf-8")
    pictures = [
        (path.stem.replace("-", " "), base64.b64encode(path.read_bytes()).decode())
        for path in figures
    ]
    laid_out = [(table, *_lay_out(table)) for table in tables]
    page = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    return page.from_string(template).render(tables=laid_out, pictures=pictures)


def _lay_out(table: Table) -> tuple[list[str], list[Block]]:
    """The header and, for each row of the table, its lines; the first two columns are text."""
    names = [
        row.name if len(table.metrics) == 1 else f"{row.name}: {metric_name(row.metric)}"
        for row in table.rows
    ]
    if table.turned:
        header = ["class", "setting", "paper", "ours", "n", "difference"]
        blocks = [_turned(row) for row in table.rows]
    else:
        header = ["class", "", *table.columns]
        blocks = [_wide(row) for row in table.rows]
    for name, block in zip(names, blocks, strict=True):
        for number, line in enumerate(block):
            line.insert(0, Text("" if number else name))
    return header, blocks


def _wide(row: Row) -> Block:
    """Three lines, of the paper, of ours and of the difference, with a field for each label.

    Where the paper has no figure at all, only ours.
    """
    entries = list(row.entries.values())
    counts = {entry.n for entry in entries if entry.n}
    same = f", n={min(counts)}" if len(counts) == 1 else ""
    paper, ours = _figures(entries)
    if not same:
        ours = [
            field._replace(text=f"{field.text} n={entry.n}") if entry.n else field
            for field, entry in zip(ours, entries, strict=True)
        ]
    own = [Text(f"ours{same}"), *ours]
    if not any(entry.paper for entry in entries):
        return [own]
    differences = [Text(_signed(entry.difference)) for entry in entries]
    return [[Text("paper"), *paper], own, [Text("difference"), *differences]]


def _turned(row: Row) -> Block:
    """A line for each label: the paper's figure, ours, n and the difference."""
    paper, ours = _figures(list(row.entries.values()))
    return [
        [
            Text(label),
            paper[i],
            ours[i],
            Text(str(entry.n or "")),
            Text(_signed(entry.difference)),
        ]
        for i, (label, entry) in enumerate(row.entries.items())
    ]


def _figures(entries: list[Entry]) -> tuple[list[Text], list[Text]]:
    """The paper's figures and ours as "mean(std)", the best of either in bold."""
    paper = [entry.paper or (None, None) for entry in entries]
    ours = [(entry.mean, entry.std) for entry in entries]
    return _with_best(paper), _with_best(ours)


def _with_best(
    figures: Sequence[tuple[float, float | None] | tuple[float | None, float | None]],
) -> list[Text]:
    """All that show the highest mean are best; alone, none is."""
    means = [_number(mean) for mean, _ in figures]
    known = [float(mean) for mean in means if mean]
    best = f"{max(known):.2f}" if len(known) > 1 else None
    return [
        Text(mean + (f"({std:.2f})" if std is not None else ""), bold=mean == best)
        for mean, (_, std) in zip(means, figures, strict=True)
    ]


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:z.2f}"


def _signed(value: float | None) -> str:
    return "" if value is None else f"{value:+z.2f}"


def _markdown(text: str, bold: bool = False) -> str:
    escaped = re.sub(r"([\\`*_|<>\[\]])", r"\\\1", text)
    return f"**{escaped}**" if bold else escaped


def _latex(text: str, bold: bool = False) -> str:
    if re.fullmatch(r"[+-][\d.]+", text):
        return f"${text}$"  # a minus, not a hyphen
    escaped = "".join(LATEX.get(sign, sign) for sign in text)
    return f"\\textbf{{{escaped}}}" if bold else escaped
