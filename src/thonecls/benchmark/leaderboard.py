"""The leaderboard: from records to ranks, tests and costs, mechanism by mechanism.

A mechanism is how labels were come by: scattered, from one half, from a plot. Methods are compared
on the same classes with the same labels, as far as each has been run.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Any

import numpy as np

from thonecls.benchmark.plan import Cell
from thonecls.benchmark.records import Results
from thonecls.benchmark.statistics import (
    Comparison,
    Friedman,
    Interval,
    average_ranks,
    compare,
    critical_difference,
    friedman,
    holm,
    mean_interval,
)
from thonecls.benchmark.studies import BRIEF, BRIEF_WARMUP
from thonecls.benchmark.targets import ALL, Place, place_name, short_title
from thonecls.methods import METHODS

PUBLISHED, DEFAULT = "t-honecls", "density-ratio"
REFERENCES = {PUBLISHED: "T-HOneCls as published", DEFAULT: "the default of thonecls"}
MECHANISMS = {  # in the order that pages show them in
    "resampled": "scattered",
    "half": "half",
    "plot": "plot",
    "spatial": "spatial",
    "polygons": "polygons of 5×5",
    "noisy": "scattered, 5 % wrong",
    "paper": "the paper's labels",
}
FAMILIES = {
    "the scene": "networks",
    "windows about a pixel": "windows",
    "single spectra": "spectra",
}
PRIORS = {"paper": "KM2 prior", "true": "true prior", "km1": "KM1 prior", "km2": "KM2 prior"}
PRIORS |= {"bbe": "BBE prior"}
# Fields of a cell that say who maps what; all others say how labels were come by.
WHO = ("dataset", "target", "method", "preset", "seed", "prior", "settings")
LEAST_METHODS, LEAST_CLASSES = 3, 5  # without which ranks mean nothing


Task = tuple[Place, int]  # a class and a seed, which draws its labels


@dataclass(frozen=True)
class Run:
    """A cell as the leaderboard sees it.

    method: with what tells its variants apart, such as "nnpu, KM2 prior, fast"; mechanism: how
    labels were come by; scores: in percent, None where it failed; cost: core-seconds of learning
    and mapping; criteria: those that need no negatives, by what they were measured on.
    """

    method: str
    family: str
    mechanism: str
    place: Place
    seed: int
    scores: Mapping[str, float] | None
    cost: float
    criteria: Mapping[str, Mapping[str, float]]

    @property
    def task(self) -> Task:
        """What other methods were run on too."""
        return self.place, self.seed

    @property
    def f1(self) -> float:
        """F1 of a run that did not fail."""
        assert self.scores is not None
        return self.scores["f1"]


ByMethod = Mapping[str, Mapping[Task, Run]]


def runs_of_board(results: Results) -> list[Run]:
    """Every record of a scene whose method has the settings of the catalogue, or was run briefly.

    What was run with other settings, such as in a study of the Taylor order, is no method of its
    own. A preset makes a difference to networks alone.
    """
    facts = [record.facts for record in results.records.values()] + results.others
    runs = {}
    for one in facts:
        cell = one["cell"]
        if (not cell.get("settings") or _is_brief(cell)) and cell["target"] != ALL:
            run = _run(one, results)
            runs[run.method, run.mechanism, run.task] = run
    return list(runs.values())


def _is_brief(cell: Mapping[str, Any]) -> bool:
    """Whether a network was run as all of the study are."""
    known = {"preset": cell.get("preset", Cell.preset), **cell.get("settings", {})}
    warmup = known.pop("warmup", BRIEF_WARMUP)
    return known == BRIEF and warmup == BRIEF_WARMUP


def _run(facts: Mapping[str, Any], results: Results) -> Run:
    cell = facts["cell"]
    name = cell.get("method", Cell.method)
    own = METHODS.get(name)
    method = own or results.methods[name]
    words = [name]
    if cell.get("prior") is not None:
        words.append(PRIORS.get(cell["prior"], f"prior {cell['prior']}"))
    if own is not None and own.learning.presets and cell.get("preset", Cell.preset) != "paper":
        words.append("brief" if _is_brief(cell) else cell["preset"])
    threads = facts.get("machine", {}).get("threads", 1)
    return Run(
        ", ".join(words),
        FAMILIES.get(method.on, method.on),
        mechanism_of(cell),
        (cell["dataset"], cell["target"]),
        cell.get("seed", 0),
        facts.get("scores"),
        float(facts.get("training_seconds", facts.get("seconds", 0.0))) * threads,
        {name: facts[name] for name in ("left_out", "pu") if facts.get(name) is not None},
    )


def mechanism_of(cell: Mapping[str, Any]) -> str:
    """How the labels of a cell were come by, in words.

    >>> mechanism_of({"dataset": "zion", "target": 1, "protocol": "half", "positives": 20})
    'half, positives 20'
    """
    protocol = cell.get("protocol", Cell.protocol)
    others = {k: v for k, v in cell.items() if k not in (*WHO, "protocol")}
    defaults = {"positives": Cell.positives}
    words = [f"{k} {v}" for k, v in sorted(others.items()) if defaults.get(k) != v]
    return ", ".join([MECHANISMS.get(protocol, protocol), *words])


def mechanisms_of(runs: Iterable[Run]) -> list[str]:
    """The mechanisms that there are, in the order of pages."""
    found = dict.fromkeys(run.mechanism for run in runs)
    order = list(MECHANISMS.values())
    base = {name: name.partition(", positives")[0].partition(", ")[0] for name in found}
    return sorted(
        found,
        key=lambda m: (order.index(base[m]) if base[m] in order else len(order), m != base[m], m),
    )


@dataclass(frozen=True)
class Standing:
    """Where a method stands among those it is ranked with; f1: interval over seeds, in percent.

    cost: mean core-seconds of a map; on_front: whether no other is both better and cheaper.
    """

    method: str
    family: str
    rank: float
    f1: Interval
    cost: float
    on_front: bool


@dataclass(frozen=True)
class Ranking:
    """Methods ranked over the classes that all of them were run on, with the same labels.

    standings: the best first; difference: by how much ranks must differ (Nemenyi).
    """

    mechanism: str
    places: tuple[Place, ...]
    seeds: tuple[int, ...]
    standings: tuple[Standing, ...]
    friedman: Friedman
    difference: float

    def find(self, method: str) -> Standing | None:
        """The standing of a method that is ranked."""
        return next((s for s in self.standings if s.method == method), None)


def rankings(runs: Sequence[Run], mechanism: str) -> list[Ranking]:
    """At most two rankings: of many methods and classes at once, and of all methods.

    The first is that with the most entries, methods times classes; the second, where it has more
    methods, is over the fewer classes that all of them have in common.
    """
    by_method = _by_method(runs, mechanism)
    candidates = [
        (methods, tasks)
        for methods, tasks in _peeled(by_method)
        if len(methods) >= LEAST_METHODS and len(_places(tasks)) >= LEAST_CLASSES
    ]
    if not candidates:
        return []
    area = [len(methods) * len(_places(tasks)) for methods, tasks in candidates]
    first, widest = candidates[int(np.argmax(area))], candidates[0]
    chosen = [first, widest] if len(widest[0]) > len(first[0]) else [first]
    return [
        _ranking(mechanism, {method: by_method[method] for method in methods}, tasks)
        for methods, tasks in chosen
    ]


def _peeled(by_method: ByMethod) -> Iterator[tuple[list[str], set[Task]]]:
    """All methods with the tasks that they have in common, then one method less, and so on.

    The one that goes is that without which the others have the most in common; of several the one
    that was run on the fewest tasks.
    """
    methods = sorted(by_method)
    while methods:
        yield methods, _common(by_method, methods)

        def gain(gone: str) -> tuple[int, int, int]:
            tasks = _common(by_method, [m for m in methods if m != gone])  # noqa: B023
            return len(_places(tasks)), len(tasks), -len(by_method[gone])

        gone = max(methods, key=gain)
        methods = [m for m in methods if m != gone]


def _common(by_method: ByMethod, methods: Sequence[str]) -> set[Task]:
    return set.intersection(*(set(by_method[m]) for m in methods)) if methods else set()


def _places(tasks: Iterable[Task]) -> set[Place]:
    return {place for place, _ in tasks}


def _by_method(runs: Iterable[Run], mechanism: str) -> dict[str, dict[Task, Run]]:
    found: dict[str, dict[Task, Run]] = {}
    for run in runs:
        if run.mechanism == mechanism and run.scores is not None:
            found.setdefault(run.method, {})[run.task] = run
    return found


def _ranking(
    mechanism: str,
    by_method: ByMethod,
    tasks: set[Task],
) -> Ranking:
    places = sorted(_places(tasks))
    methods = list(by_method)
    scores = np.array(
        [
            [fmean(by_method[m][t].f1 for t in tasks if t[0] == place) for m in methods]
            for place in places
        ]
    )
    seeds = sorted({seed for _, seed in tasks})
    whole = [seed for seed in seeds if all((place, seed) in tasks for place in places)]
    standings = []
    for number, (method, rank) in enumerate(zip(methods, average_ranks(scores), strict=True)):
        own = by_method[method]
        of_seeds = [fmean(own[place, seed].f1 for place in places) for seed in whole]
        f1 = _about(float(scores[:, number].mean()), of_seeds)
        cost = fmean(own[task].cost for task in tasks)
        family = next(iter(own.values())).family
        standings.append(Standing(method, family, float(rank), f1, cost, on_front=False))
    standings = [replace(s, on_front=_on_front(s, standings)) for s in standings]
    return Ranking(
        mechanism,
        tuple(places),
        tuple(seeds),
        tuple(sorted(standings, key=lambda s: (s.rank, s.method))),
        friedman(scores),
        critical_difference(len(methods), len(places)),
    )


def _about(mean: float, of_seeds: Sequence[float]) -> Interval:
    """An interval about a mean, as wide as seeds with every class say; within 0 to 100."""
    if len(of_seeds) < 2:
        return Interval(mean, None, None, len(of_seeds))
    spread = mean_interval(of_seeds)
    assert spread.high is not None
    half = spread.high - spread.mean
    return replace(spread, mean=mean, low=max(0.0, mean - half), high=min(100.0, mean + half))


def _on_front(one: Standing, standings: Iterable[Standing]) -> bool:
    """Whether no other is at least as good and as cheap, and better in one of both."""
    return not any(
        other.f1.mean >= one.f1.mean
        and other.cost <= one.cost
        and (other.f1.mean, other.cost) != (one.f1.mean, one.cost)
        for other in standings
    )


def against(runs: Sequence[Run], mechanism: str, reference: str) -> dict[str, Comparison]:
    """Every other method against one, on the classes and labels that both were run on.

    The p-values of a mechanism are corrected together (Holm).
    """
    by_method = _by_method(runs, mechanism)
    theirs = by_method.pop(reference, {})
    found = {}
    for method, ours in by_method.items():
        tasks = ours.keys() & theirs.keys()
        places = sorted(_places(tasks))
        if places:
            means = [
                [fmean(own[t].f1 for t in tasks if t[0] == place) for place in places]
                for own in (ours, theirs)
            ]
            found[method] = compare(*means)
    adjusted = holm({method: one.p for method, one in found.items()})
    return {method: replace(one, adjusted=adjusted[method]) for method, one in found.items()}


def name_of(place: Place, results: Results) -> tuple[str, str]:
    """The scene and the class of a place in words, from the catalogue or its card."""
    card = results.scenes.get(place[0])
    if card is not None:
        return card.title.partition(",")[0], f"{place[1]}, {card.classes[place[1]]}"
    scene = short_title(place[0])
    return scene, place_name(place).removeprefix(f"{scene} ")
