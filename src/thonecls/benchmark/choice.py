"""Choosing a method without negatives: how well each criterion picks, against the oracle.

A criterion is honest where it was measured on labels that were left out of learning (`left_out` of
a record). Measured on the positives among the tested pixels (`pu`) it tells only how good it could
be, and is kept apart: nobody who maps has those.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, median

from thonecls.benchmark.leaderboard import Run
from thonecls.benchmark.statistics import Interval, mean_interval

SOURCES = {"left_out": "labels left out", "pu": "positives among the tested"}
LEAST_METHODS, LEAST_TASKS = 2, 5  # without which there is nothing to choose, or to tell of it

Criteria = Mapping[str, float]


def proxy_accuracy(criteria: Criteria, prior: float) -> float:
    """The accuracy that recall, share and a class prior imply, in percent (Wang 2025).

    From P(mapped) = π recall + (1 - π) (1 - specificity), accuracy is 2π recall + (1 - share) - π.

    >>> proxy_accuracy({"recall": 100.0, "share": 20.0}, 0.2)  # a perfect map
    100.0
    """
    return 2 * prior * criteria["recall"] + 100.0 - criteria["share"] - 100.0 * prior


# By name; called with a run's criteria and the prior of its task.
CRITERIA: dict[str, Callable[[Criteria, float], float]] = {
    "PAUC": lambda criteria, _: criteria["pauc"],
    "recall² / share": lambda criteria, _: criteria["puf"],
    "proxy accuracy": proxy_accuracy,
}


@dataclass(frozen=True)
class Pick:
    """How well a way of choosing does, over tasks: a class, its labels, and several methods.

    regret: F1 of the best method less that of the one chosen, in percent; best: the share of tasks
    in which it chose the best.
    """

    source: str
    criterion: str
    f1: float
    regret: Interval
    best: float


def picks(runs: Sequence[Run], mechanism: str, source: str, default: str) -> list[Pick]:
    """How each criterion picks among the methods that were measured by it, beside no choice at all.

    source: where the criteria come from, `SOURCES`; default: the method that is always taken
    otherwise. The prior of a task is the median of what the models themselves estimate, so that
    proxy accuracy is left out where no record has an estimate. Tasks without the default, or with a
    single method, do not count.
    """
    tasks: dict[object, list[Run]] = {}
    for run in runs:
        if run.mechanism == mechanism and run.scores is not None and source in run.criteria:
            tasks.setdefault(run.task, []).append(run)
    groups = [
        group
        for group in tasks.values()
        if len(group) >= LEAST_METHODS and any(run.method == default for run in group)
    ]
    if len(groups) < LEAST_TASKS:
        return []
    found = []
    for name, criterion in CRITERIA.items():
        chosen = [_choose(group, source, criterion) for group in groups]
        if name == "proxy accuracy" and not all(_priors(group, source) for group in groups):
            continue
        found.append(_pick(source, name, groups, [run.f1 for run in chosen]))
    always = [next(run.f1 for run in group if run.method == default) for group in groups]
    random = [fmean(run.f1 for run in group) for group in groups]
    found.append(_pick(source, f"always {default}", groups, always))
    found.append(_pick(source, "any, at random", groups, random))
    return found


def _choose(
    group: Sequence[Run], source: str, criterion: Callable[[Criteria, float], float]
) -> Run:
    """The run that a criterion prefers; of equal ones the first by name."""
    prior = median(_priors(group, source) or [0.0])
    return min(group, key=lambda run: (-criterion(run.criteria[source], prior), run.method))


def _priors(group: Sequence[Run], source: str) -> list[float]:
    found = [run.criteria[source].get("prior") for run in group]
    return [prior for prior in found if prior is not None]


def _pick(source: str, name: str, groups: Sequence[Sequence[Run]], f1: Sequence[float]) -> Pick:
    best = [max(run.f1 for run in group) for group in groups]
    regrets = [top - own for top, own in zip(best, f1, strict=True)]
    hits = fmean(float(regret <= 1e-9) for regret in regrets)
    return Pick(source, name, fmean(f1), mean_interval(regrets), hits)
