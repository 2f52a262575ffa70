"""Tables of our results beside the paper's: Markdown, LaTeX, CSV and HTML."""

from __future__ import annotations

import base64
import csv
import io
import re
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

from jinja2 import Environment

from thonecls.benchmark.comparison import Entry, Row, Table, build_table, metric_name

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
