"""Whether a map can be trusted, although no negatives are known.

`assess` gathers what held-out labels and unlabeled pixels tell; `summarise` says it in words.
"""

from __future__ import annotations

from thonecls.places import (
    Places,
    distances,
    find_places,
    lattice,
    spectral_components,
    unlike_labels,
)
from thonecls.trust.assessment import (
    Caution,
    Circumstances,
    HeldOut,
    Level,
    TrustReport,
    assess,
    summarise,
)
from thonecls.trust.evidence import (
    BOUND,
    Estimate,
    Opinion,
    Prevalence,
    Rates,
    Resamples,
    Stability,
    Votes,
    auc_from_pu,
    compare,
    count_votes,
    estimate_prevalence,
    estimate_rates,
    estimate_recall,
    percent,
    rates,
    resample,
    span,
    stability,
    wilson,
)
from thonecls.trust.thresholds import Choice, Curve, choose_threshold, threshold_curve
from thonecls.trust.verification import STRATA, Verification, draw_points, stratify, verify

__all__ = [
    "BOUND",
    "STRATA",
    "Caution",
    "Choice",
    "Circumstances",
    "Curve",
    "Estimate",
    "HeldOut",
    "Level",
    "Opinion",
    "Places",
    "Prevalence",
    "Rates",
    "Resamples",
    "Stability",
    "TrustReport",
    "Verification",
    "Votes",
    "assess",
    "auc_from_pu",
    "choose_threshold",
    "compare",
    "count_votes",
    "distances",
    "draw_points",
    "estimate_prevalence",
    "estimate_rates",
    "estimate_recall",
    "find_places",
    "lattice",
    "percent",
    "rates",
    "resample",
    "span",
    "spectral_components",
    "stability",
    "stratify",
    "summarise",
    "threshold_curve",
    "unlike_labels",
    "verify",
    "wilson",
]
