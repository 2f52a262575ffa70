"""What the steps return, as frozen values; `as_dict` is their JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

Status = Literal["ok", "note", "problem"]


@dataclass(frozen=True)
class Finding:
    """One line of a check; options: those that help, named in the words as errors name theirs."""

    subject: str
    words: str
    status: Status = "ok"
    options: tuple[str, ...] = ()


@dataclass(frozen=True)
class CheckSummary:
    """What a check found; command: how to train as was checked, None without labels."""

    scene: str
    labels: str | None
    findings: tuple[Finding, ...]
    command: str | None

    @property
    def fit(self) -> bool:
        """Whether work can begin: nothing found is a problem."""
        return all(finding.status != "problem" for finding in self.findings)

    def as_dict(self) -> dict[str, Any]:
        """As `thonecls check --json` prints it."""
        return {
            "scene": self.scene,
            "labels": self.labels,
            "findings": [asdict(finding) for finding in self.findings],
            "command": self.command,
            "fit": self.fit,
        }


@dataclass(frozen=True)
class MapSummary:
    """What mapping made; novel_share: of the scene, unlike the training scene, where it is known.

    notes: on how the scene was read and what was left out; problems: what could not be made
    besides the map; facts: all that map.json holds.
    """

    out: Path
    threshold: float
    threshold_reason: str
    mapped_share: float
    novel_share: float | None
    notes: tuple[str, ...]
    warning: str | None
    problems: tuple[str, ...]
    facts: Mapping[str, Any] = field(repr=False)

    def as_dict(self) -> dict[str, Any]:
        """As map.json has it."""
        return dict(self.facts)


@dataclass(frozen=True)
class RunSummary:
    """What a training made; verdict, words and finding: of its report, None where that failed.

    finished: False where somebody stopped it; facts: all that run.json holds, with settings,
    versions and digests of the files.
    """

    out: Path
    method: str
    label: str
    positives: int
    held_out: int
    finished: bool
    seconds: float
    threshold: float
    threshold_reason: str
    mapped_share: float
    notes: tuple[str, ...]
    verdict: Literal["good", "check", "poor"] | None
    words: str | None
    finding: str | None
    scores: Mapping[str, float] | None
    warning: str | None
    problems: tuple[str, ...]
    facts: Mapping[str, Any] = field(repr=False)

    def as_dict(self) -> dict[str, Any]:
        """As run.json has it."""
        return dict(self.facts)


@dataclass(frozen=True)
class PriorEstimate:
    """The class prior by one estimator; from low to high lie 90 % of resamples."""

    value: float
    low: float | None
    high: float | None


@dataclass(frozen=True)
class PriorSummary:
    """The class prior by every estimator, by name."""

    cube: str
    labels: str
    priors: Mapping[str, PriorEstimate]

    def as_dict(self) -> dict[str, Any]:
        """As `thonecls prior --json` prints it."""
        found = {name: asdict(prior) for name, prior in self.priors.items()}
        return {"cube": self.cube, "labels": self.labels, "priors": found}


def summary_of_map(facts: Mapping[str, Any]) -> MapSummary:
    """From what map.json holds."""
    return MapSummary(
        out=Path(facts["out"]),
        threshold=facts["threshold"],
        threshold_reason=facts["threshold_reason"],
        mapped_share=facts["mapped_share"],
        novel_share=facts.get("novel_share"),
        notes=tuple(facts["notes"]),
        warning=facts.get("warning"),
        problems=tuple(facts.get("problems", ())),
        facts=facts,
    )


def summary_of_run(facts: Mapping[str, Any]) -> RunSummary:
    """From what run.json holds."""
    return RunSummary(
        out=Path(facts["out"]),
        method=facts["method"],
        label=facts.get("label", "class"),
        positives=facts["positives"],
        held_out=facts["held_out"],
        finished=facts["finished"],
        seconds=facts["seconds"],
        threshold=facts["threshold"],
        threshold_reason=facts.get("threshold_reason", ""),
        mapped_share=facts["mapped_share"],
        notes=tuple(facts["notes"]),
        verdict=facts.get("verdict"),
        words=facts.get("words"),
        finding=facts.get("finding"),
        scores=facts.get("scores"),
        warning=facts.get("warning"),
        problems=tuple(facts.get("problems", ())),
        facts=facts,
    )
