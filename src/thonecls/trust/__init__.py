"""Whether a map can be trusted, although no negatives are known.

`assess` gathers what held-out labels and unlabeled pixels tell; `summarise` says it in words.
"""

from __future__ import annotations

from thonecls.trust.assessment import HeldOut, TrustReport, assess, summarise
from thonecls.trust.cautions import Caution, Level
from thonecls.trust.evidence import (
    BOUND,
    Estimate,
    Prevalence,
    Rates,
    Resamples,
    auc_from_pu,
    estimate_prevalence,
    estimate_rates,
    estimate_recall,
    percent,
    rates,
    resample,
    span,
    wilson,
)
from thonecls.trust.stability import Stability, Votes, count_votes, stability
from thonecls.trust.thresholds import Choice, Curve, choose_threshold, threshold_curve

__all__ = [
    "BOUND",
    "Caution",
    "Choice",
    "Curve",
    "Estimate",
    "HeldOut",
    "Level",
    "Prevalence",
    "Rates",
    "Resamples",
    "Stability",
    "TrustReport",
    "Votes",
    "assess",
    "auc_from_pu",
    "choose_threshold",
    "count_votes",
    "estimate_prevalence",
    "estimate_rates",
    "estimate_recall",
    "percent",
    "rates",
    "resample",
    "span",
    "stability",
    "summarise",
    "threshold_curve",
    "wilson",
]
