"""The leaderboard as one page that needs no other file, and as tables for the docs."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

from jinja2 import Environment

from thonecls.benchmark.board_figures import as_svg, draw_costs, draw_ranks
from thonecls.benchmark.choice import SOURCES, Pick, picks
from thonecls.benchmark.leaderboard import (
    DEFAULT,
    PUBLISHED,
    REFERENCES,
    Ranking,
    Run,
    against,
    mechanisms_of,
    name_of,
    rankings,
    runs_of_board,
)
from thonecls.benchmark.records import Results
from thonecls.benchmark.statistics import Comparison, Interval
from thonecls.files import write_atomically

SURE = 0.05  # p below which a difference counts


def write_leaderboard(results: Results, path: Path) -> Path:
    """Write the page of all records; it asks for nothing from anywhere."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, as_page(results).encode())
    return path


def as_page(results: Results) -> str:
    """The leaderboard as HTML: a table to sort and filter, and the evidence of each mechanism."""
    runs = runs_of_board(results)
    mechanisms = mechanisms_of(runs)
    sections = [_section(runs, mechanism, results) for mechanism in mechanisms]
    template = (files("thonecls.benchmark") / "leaderboard.html").read_text("utf-8")
    page = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    page.filters |= {"p": in_p, "interval": in_interval}
    return page.from_string(template).render(
        sections=sections,
        summary=summary(results),
        data=_data(runs, sections, results),
        facts=_facts(runs, results),
        references=REFERENCES,
        sure=SURE,
    )


def _section(runs: Sequence[Run], mechanism: str, results: Results) -> dict[str, Any]:
    """What is known of one mechanism."""
    ranked, tests = rankings(runs, mechanism), _tests(runs, mechanism)
    return {
        "mechanism": mechanism,
        "rankings": [
            {
                "ranking": ranking,
                "scenes": _scenes(ranking, results),
                "ranks": as_svg(draw_ranks(ranking), f"Mean ranks, {mechanism}"),
                "costs": as_svg(draw_costs(ranking), f"F1 and core-seconds, {mechanism}"),
            }
            for ranking in ranked
        ],
        "tests": tests,
        "tested": [r for r in REFERENCES if any(r in found for _, found in tests)],
        "choice": _choice(runs, mechanism),
    }


def _scenes(ranking: Ranking, results: Results) -> str:
    """The scenes of a ranking, with how many classes each."""
    counts: dict[str, int] = {}
    for place in ranking.places:
        scene, _ = name_of(place, results)
        counts[scene] = counts.get(scene, 0) + 1
    return ", ".join(f"{scene} ({count})" for scene, count in counts.items())


def _tests(runs: Sequence[Run], mechanism: str) -> list[tuple[str, dict[str, Comparison]]]:
    """Every method against each of the references, by its mean difference from the default."""
    found = {reference: against(runs, mechanism, reference) for reference in REFERENCES}
    methods = {method for tests in found.values() for method in tests}

    def difference(method: str) -> tuple[float, str]:
        own = found[DEFAULT].get(method)
        return (-own.difference if own else 0.0 if method == DEFAULT else 1e9, method)

    return [
        (method, {r: tests[method] for r, tests in found.items() if method in tests})
        for method in sorted(methods, key=difference)
    ]


def _choice(runs: Sequence[Run], mechanism: str) -> list[tuple[str, list[Pick]]]:
    found = [(words, picks(runs, mechanism, s, DEFAULT)) for s, words in SOURCES.items()]
    return [(words, of_source) for words, of_source in found if of_source]


def summary(results: Results) -> list[dict[str, Any]]:
    """For each mechanism: where both references and the best other method stand."""
    runs = runs_of_board(results)
    lines = []
    for mechanism in mechanisms_of(runs):
        run_here = {r.method for r in runs if r.mechanism == mechanism and r.scores is not None}
        for ranking in rankings(runs, mechanism):
            other = next(s for s in ranking.standings if s.method not in REFERENCES)
            tests = {r: against(runs, mechanism, r).get(other.method) for r in REFERENCES}
            lines.append(
                {
                    "mechanism": mechanism,
                    "ranking": ranking,
                    "published": ranking.find(PUBLISHED),
                    "default": ranking.find(DEFAULT),
                    "other": other,
                    "tests": tests,
                    "missing": {
                        reference: "on fewer classes" if reference in run_here else "not run"
                        for reference in REFERENCES
                    },
                }
            )
    return lines


def summary_markdown(results: Results) -> str:
    """The summary as a table for the docs, with how many records it stands on."""
    header = [
        "labels",
        "methods",
        "classes",
        "seeds",
        *REFERENCES.values(),
        "best other",
        "p, Holm",
    ]
    lines = [f"| {' | '.join(header)} |", f"|{'---|' * len(header)}"]
    for line in summary(results):
        ranking: Ranking = line["ranking"]
        standing = [
            f"{s.rank:.2f}, F1 {in_interval(s.f1)}"
            if (s := line[name])
            else line["missing"][method]
            for name, method in (("published", PUBLISHED), ("default", DEFAULT))
        ]
        other, test = line["other"], line["tests"][DEFAULT]
        lines.append(
            f"| {line['mechanism']} | {len(ranking.standings)} | {len(ranking.places)} "
            f"| {', '.join(map(str, ranking.seeds))} | {' | '.join(standing)} "
            f"| `{other.method}` {other.rank:.2f}, F1 {in_interval(other.f1)} "
            f"| {in_p(test.adjusted if test else None)} |"
        )
    runs = runs_of_board(results)
    return "\n".join([*lines, "", f"{_facts(runs, results)['words']} {len(runs)} cells are run."])


def choice_markdown(results: Results) -> str:
    """How well criteria without negatives pick, as a table for the docs."""
    runs = runs_of_board(results)
    header = ["labels", "measured on", "chosen by", "tasks", "F1", "regret, 95 %", "best chosen"]
    lines = [f"| {' | '.join(header)} |", f"|{'---|' * len(header)}"]
    for mechanism in mechanisms_of(runs):
        for words, of_source in _choice(runs, mechanism):
            lines += [
                f"| {mechanism} | {words} | {pick.criterion} | {pick.regret.n} | {pick.f1:.1f} "
                f"| {in_interval(pick.regret)} | {pick.best:.0%} |".replace("%", " %")
                for pick in of_source
            ]
    return "\n".join([*lines, "", f"{len(runs)} cells are run."])


def in_interval(value: Interval) -> str:
    """A mean with its interval.

    >>> in_interval(Interval(50.0, 48.0, 52.0, 5)), in_interval(Interval(50.0, None, None, 1))
    ('50.0 (48.0 to 52.0)', '50.0')
    """
    if value.low is None or value.high is None:
        return f"{value.mean:.1f}"
    return f"{value.mean:.1f} ({value.low:.1f} to {value.high:.1f})"


def in_p(p: float | None) -> str:
    """A p-value in words.

    >>> in_p(0.00012), in_p(0.0421), in_p(1.0), in_p(None)
    ('< 0.001', '0.042', '1', '')
    """
    if p is None:
        return ""
    return "< 0.001" if p < 0.001 else "1" if p > 0.9995 else f"{p:.3f}"


def _facts(runs: Sequence[Run], results: Results) -> dict[str, Any]:
    """How much evidence there is, and by what it was made."""
    facts = [r.facts for r in results.records.values()] + results.others
    versions = sorted(
        {f["versions"]["thonecls"] for f in facts if "thonecls" in f.get("versions", {})}
    )
    machines = sorted({f["machine"]["processor"] for f in facts if "machine" in f})
    dates = sorted({f["date"][:10] for f in facts if "date" in f})
    failed = sum(run.scores is None for run in runs)
    counts = {
        "records": len(runs),
        "failed": failed,
        "methods": len({run.method for run in runs}),
        "classes": len({run.place for run in runs}),
        "scenes": len({run.place[0] for run in runs}),
    }
    span = dates[0] if len(dates) == 1 else f"{dates[0]} to {dates[-1]}" if dates else ""
    words = [f"Version {', '.join(versions)}" if versions else "", *machines, span]
    return {**counts, "words": " ".join(f"{word}." for word in words if word)}


def _data(
    runs: Sequence[Run], sections: Sequence[dict[str, Any]], results: Results
) -> dict[str, Any]:
    """What the table is computed from, for each method, mechanism and class."""
    places = sorted({run.place for run in runs})
    number = {place: i for i, place in enumerate(places)}
    groups: dict[tuple[str, str, int], list[Run]] = {}
    for run in runs:
        groups.setdefault((run.method, run.mechanism, number[run.place]), []).append(run)
    rows = []
    for (method, mechanism, place), own in groups.items():
        done = {run.seed: run for run in own if run.scores is not None}
        seeds = {
            str(seed): [
                *(round(run.scores[name], 2) for name in ("f1", "precision", "recall")),
                round(run.cost, 2),
            ]
            for seed, run in sorted(done.items())
            if run.scores is not None
        }
        rows.append([method, mechanism, place, seeds, len(own) - len(done)])
    return {
        "places": [[*name_of(place, results), place[0]] for place in places],
        "methods": {run.method: run.family for run in runs},
        "rows": rows,
        "ranked": {
            section["mechanism"]: {
                "places": [number[p] for p in section["rankings"][0]["ranking"].places],
                "ranks": {
                    s.method: round(s.rank, 2) for s in section["rankings"][0]["ranking"].standings
                },
            }
            for section in sections
            if section["rankings"]
        },
        "references": list(REFERENCES),
        "defaults": {"published": PUBLISHED, "ours": DEFAULT},
    }


__all__ = ["as_page", "choice_markdown", "summary", "summary_markdown", "write_leaderboard"]
