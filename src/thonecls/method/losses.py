"""Positive-unlabeled losses as pure functions of 1-D logits: loss(positive, unlabeled, ...).

Notation: f = sigmoid(logit); m = mean of f over the unlabeled; s = 1 - m; pi = the class prior.
positive: (n_p,) logits; unlabeled: (n_u,) logits. Every loss returns a scalar, in float32 or
better, and is finite with finite gradients at any finite logit.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Literal

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid, softplus

from thonecls.errors import ConfigError
from thonecls.method.taylor import at_least_float32, series_of, taylor_variational, variational

Surrogate = Literal["sigmoid", "logistic"]
Reduction = Literal["balanced", "pooled"]


def upu(
    positive: Tensor, unlabeled: Tensor, prior: float, *, surrogate: Surrogate = "sigmoid"
) -> Tensor:
    """Unbiased PU risk (du Plessis 2015): pi R_p+ + R_u- - pi R_p-. Can fall below 0.

    >>> z = torch.tensor([0.0, 0.0])
    >>> round(upu(z, z, prior=0.3).item(), 4)
    0.5
    """
    gain, negative = _risks(positive, unlabeled, prior, surrogate)
    return gain + negative


def nnpu(
    positive: Tensor,
    unlabeled: Tensor,
    prior: float,
    *,
    surrogate: Surrogate = "sigmoid",
    allowance: float = 0.0,
    ascent: float = 1.0,
) -> Tensor:
    """Non-negative PU risk (Kiryo 2017): the negative part N = R_u- - pi R_p- is kept above 0.

    Below -allowance the value stops there, and the gradient is that of -ascent * N alone: the
    step undoes what has been overfitted. Clamping N at 0 would only stand still.
    """
    gain, negative = _risks(positive, unlabeled, prior, surrogate)
    return _kept_above(gain, negative, allowance, ascent)


def _kept_above(
    gain: Tensor, negative: Tensor, allowance: float = 0.0, ascent: float = 1.0
) -> Tensor:
    """gain + negative, the latter kept above -allowance as `nnpu` says."""
    if negative >= -allowance:
        return gain + negative
    backwards = -ascent * negative
    return backwards + (gain - allowance - backwards).detach()


def imb_nnpu(
    positive: Tensor,
    unlabeled: Tensor,
    prior: float,
    *,
    surrogate: Surrogate = "sigmoid",
    balance: float = 0.5,
) -> Tensor:
    """Non-negative PU risk of a balanced class (Su 2021), where the class is rare in truth.

    balance * R_p+ + (1 - balance) (R_u- - pi R_p-) / (1 - pi), the second part kept above 0 as in
    `nnpu`: the risk where positives were so large a share as `balance`.
    """
    gain, negative = _risks(positive, unlabeled, prior, surrogate)
    return _kept_above(balance / prior * gain, (1 - balance) / (1 - prior) * negative)


def abs_negative(
    positive: Tensor, unlabeled: Tensor, prior: float, *, surrogate: Surrogate = "sigmoid"
) -> Tensor:
    """PU risk whose negative part is taken by its absolute value: pi R_p+ + |R_u- - pi R_p-|."""
    gain, negative = _risks(positive, unlabeled, prior, surrogate)
    return gain + negative.abs()


def oc(
    positive: Tensor,
    unlabeled: Tensor,
    prior: float,
    *,
    surrogate: Surrogate = "sigmoid",
    focus: float = 0.1,
    weight: float = 0.3,
) -> Tensor:
    """OC loss of HOneCls: weight * focal positive risk + (1 - weight) * |negative risk|.

    The focal factor (1 - f)^focus carries a gradient, and is constant above f = 0.999.
    """
    loss = _SURROGATES[surrogate]
    positive, unlabeled = at_least_float32(positive), at_least_float32(unlabeled)
    # log(1 - f), held where f reaches 0.999
    log_rest = torch.clamp(logsigmoid(-positive), min=torch.tensor(0.001).log().item())
    of_positive = (loss(positive) * torch.exp(focus * log_rest)).mean()
    negative = loss(-unlabeled).mean() - _prior(prior) * loss(-positive).mean()
    return weight * of_positive + (1 - weight) * negative.abs() / (1 - prior)


oc_warmup = functools.partial(oc, surrogate="logistic")


def bce(positive: Tensor, unlabeled: Tensor, *, reduction: Reduction = "balanced") -> Tensor:
    """Cross-entropy with the unlabeled as negatives: the supervised binary classifier."""
    return _unlabeled_as_negative(softplus, positive, unlabeled, reduction)


def mae(positive: Tensor, unlabeled: Tensor, *, reduction: Reduction = "balanced") -> Tensor:
    """Mean absolute error 2(1 - p_y), unlabeled as negatives."""
    return _unlabeled_as_negative(lambda z: 2 * torch.sigmoid(z), positive, unlabeled, reduction)


def mse(positive: Tensor, unlabeled: Tensor, *, reduction: Reduction = "balanced") -> Tensor:
    """Squared error of both class probabilities, 2(1 - p_y)^2 (Ghosh 2017)."""
    return _unlabeled_as_negative(
        lambda z: 2 * torch.sigmoid(z) ** 2, positive, unlabeled, reduction
    )


def gce(
    positive: Tensor,
    unlabeled: Tensor,
    *,
    exponent: float = 0.3,
    reduction: Reduction = "balanced",
) -> Tensor:
    """Generalised cross-entropy (1 - p_y^q) / q (Zhang 2018), between BCE (q -> 0) and MAE."""
    return _unlabeled_as_negative(
        # p^q as exp(q log p): p^(q-1) in its gradient would be infinite at p = 0.
        lambda z: -torch.expm1(exponent * logsigmoid(-z)) / exponent,
        positive,
        unlabeled,
        reduction,
    )


def sce(
    positive: Tensor,
    unlabeled: Tensor,
    *,
    forward: float = 0.01,
    reverse: float = 4.0,
    reduction: Reduction = "balanced",
) -> Tensor:
    """Symmetric cross-entropy: forward * -log p_y + reverse * (1 - p_y) (Wang 2019)."""
    return _unlabeled_as_negative(
        lambda z: forward * softplus(z) + reverse * torch.sigmoid(z),
        positive,
        unlabeled,
        reduction,
    )


def tce(
    positive: Tensor, unlabeled: Tensor, order: int = 6, *, reduction: Reduction = "balanced"
) -> Tensor:
    """Taylor cross-entropy Σ_{i=1..order} (1 - p_y)^i / i (Feng 2020), per sample."""
    return _unlabeled_as_negative(
        lambda z: series_of(torch.sigmoid(z), order), positive, unlabeled, reduction
    )


def dist_pu(positive: Tensor, unlabeled: Tensor, prior: float) -> Tensor:
    """Label-distribution term of Dist-PU (Zhao 2022): (1 - E_p f) + |E_u f - pi| / (2 pi)."""
    gap = torch.sigmoid(at_least_float32(unlabeled)).mean() - _prior(prior)
    return torch.sigmoid(-at_least_float32(positive)).mean() + gap.abs() / (2 * prior)


def vpu(positive: Tensor, unlabeled: Tensor, mix: float = 0.3) -> Tensor:
    """vPU (Chen 2020): the variational loss, and a MixUp term that keeps it from collapsing.

    Mixed are the features before the head, which is linear: the logit of the mixture is the
    mixture of the logits. So every positive is mixed with every unlabeled pixel, and the mean
    over the Beta(0.3, 0.3) weight is taken by Gauss-Jacobi quadrature in place of one draw.
    """
    return variational(positive, unlabeled) + mix * _mixup(positive, unlabeled)


def lbe(positive: Tensor, unlabeled: Tensor, e_positive: Tensor, e_unlabeled: Tensor) -> Tensor:
    """LBE (Gong 2021): a step of EM for labels that some positives are likelier to have.

    h = sigmoid of the first two is the probability of the class, e = sigmoid of the others the
    propensity, that of a label if it is the class. An unlabeled pixel is positive with the
    probability q = h (1 - e) / (1 - h e), which carries no gradient:
    -E_p[log h + log e] - E_u[q (log h + log(1 - e)) + (1 - q) log(1 - h)].
    Its gradient is that of -E_p[log h e] - E_u[log(1 - h e)], the likelihood of the labels.
    """
    p, u, ep, eu = map(at_least_float32, (positive, unlabeled, e_positive, e_unlabeled))
    with torch.no_grad():
        # The odds of q are those of h times 1 - e.
        q = torch.sigmoid(u + logsigmoid(-eu))
    as_class = q * (logsigmoid(u) + logsigmoid(-eu)) + (1 - q) * logsigmoid(-u)
    return -(logsigmoid(p) + logsigmoid(ep)).mean() - as_class.mean()


def pubn(
    positive: Tensor,
    unlabeled: Tensor,
    negative: Tensor,
    weights: tuple[Tensor, Tensor, Tensor],
    prior: float,
    known: float,
) -> Tensor:
    """Risk from positive, unlabeled and biased negative pixels (Hsieh 2019), logistic.

    pi R_p+ + rho R_n- and, for what neither kind of label stands for, E_u[w l-] + pi E_p[w l-] +
    rho E_n[w l-], with the weights w of `pubn_weight` for the three; known: rho, the share of the
    scene that the negatives stand for. Without negatives rho is 0 and they may be none.
    """
    loss = _SURROGATES["logistic"]
    p, u, n = map(at_least_float32, (positive, unlabeled, negative))
    of_p, of_u, of_n = weights
    total = _prior(prior) * (loss(p) + of_p * loss(-p)).mean() + (of_u * loss(-u)).mean()
    return total + known * ((1 + of_n) * loss(-n)).mean() if len(n) else total


def pubn_kinds(
    positive: Tensor, unlabeled: Tensor, negative: Tensor, prior: float, known: float
) -> Tensor:
    """PUbN's first risk: `nnpu`, logistic, with both kinds of labels as the positive class.

    Each weighs as its share of the scene, `prior` and `known`; without negatives it is `nnpu`.
    """
    gain, rest = _risks(positive, unlabeled, prior, "logistic")
    if len(negative):
        loss, n = _SURROGATES["logistic"], at_least_float32(negative)
        gain, rest = gain + known * loss(n).mean(), rest - known * loss(-n).mean()
    return _kept_above(gain, rest)


def pubn_weight(sigma: Tensor, cut: float, *, labelled: bool) -> Tensor:
    """How much a pixel stands for those that have no label of their kind.

    sigma: the probability that a pixel is of a kind that is labelled. Up to the cut unlabeled
    pixels count, by 1 - sigma; above it those with a label do, by (1 - sigma) / sigma.

    >>> pubn_weight(torch.tensor([0.25, 0.75]), 0.5, labelled=False).tolist()
    [0.75, 0.0]
    >>> pubn_weight(torch.tensor([0.25, 0.5]), 0.3, labelled=True).tolist()
    [0.0, 1.0]
    """
    if labelled:
        return torch.where(sigma > cut, (1 - sigma) / sigma, 0.0)
    return torch.where(sigma <= cut, 1 - sigma, 0.0)


def pan_value(
    d_positive: Tensor,
    d_unlabeled: Tensor,
    c_unlabeled: Tensor,
    *,
    weight: float = 1e-4,
    eps: float = 0.0,
) -> Tensor:
    """Value of PAN's game (Hu 2021), raised by the discriminator D and lowered by the classifier C.

    E_p log D + E_u log(1 - D) + weight * `pan_coupling`, from the logits of D and C.
    """
    return -bce(d_positive, d_unlabeled) + weight * pan_coupling(d_unlabeled, c_unlabeled, eps)


def pan_coupling(d_unlabeled: Tensor, c_unlabeled: Tensor, eps: float = 0.0) -> Tensor:
    """E_u[(log(1 - C) - log C) (2D - 1)], all that C sees of the game; eps > 0 bounds it."""
    z = at_least_float32(c_unlabeled)
    difference = -z  # of the two logarithms
    if eps > 0:
        difference = torch.log(torch.sigmoid(-z) + eps) - torch.log(torch.sigmoid(z) + eps)
    return (difference * torch.tanh(at_least_float32(d_unlabeled) / 2)).mean()


def pan_value_reference(
    d_positive: Tensor,
    d_unlabeled: Tensor,
    c_unlabeled: Tensor,
    *,
    weight: float = 1e-4,
    eps: float = 0.01,
) -> Tensor:
    """The game as PAN's authors coded it: sums, and a hinge on as many unlabeled as positive."""
    d_p, d_u = (torch.sigmoid(at_least_float32(z)) for z in (d_positive, d_unlabeled))
    first = d_u[: len(d_p)]
    rest = torch.sigmoid(-at_least_float32(d_unlabeled)[: len(d_p)]).mean().detach()
    level = torch.log(rest.clamp(min=torch.finfo(rest.dtype).tiny))  # 1 - rest may round to 1
    hinge = torch.clamp(torch.log(1 - first + eps) - level, min=0)
    coupling = pan_coupling(d_unlabeled, c_unlabeled, eps) * len(d_u)
    return torch.log(d_p + eps).sum() + hinge.sum() + weight * coupling


def _mixup(positive: Tensor, unlabeled: Tensor) -> Tensor:
    """E over weights g and pairs of (log t - log f~)^2, t = g f(u) + 1 - g, f~ of the mixture."""
    p, u = at_least_float32(positive)[:, None], at_least_float32(unlabeled)[None, :]
    total = torch.zeros_like(u[0, 0])
    for g, share in _beta_quadrature():
        total = total + share * mixup_term(g, u, logsigmoid(g * u + (1 - g) * p)).mean()
    return total


def mixup_term(g: float, unlabeled: Tensor, log_mixed: Tensor) -> Tensor:
    """(log t - log f~)^2 with t = g f(u) + (1 - g), from the logit of u and from log f~."""
    return (torch.log1p(-g * torch.sigmoid(-unlabeled)) - log_mixed) ** 2


@functools.cache
def _beta_quadrature(shape: float = 0.3, nodes: int = 8) -> list[tuple[float, float]]:
    """Weights g in (0, 1) and their shares, exact for polynomials under Beta(shape, shape)."""
    from scipy.special import roots_jacobi  # here, so that the losses cost what torch costs

    x, w = roots_jacobi(nodes, shape - 1, shape - 1)
    return [(float((a + 1) / 2), float(b / w.sum())) for a, b in zip(x, w, strict=True)]


def _risks(
    positive: Tensor, unlabeled: Tensor, prior: float, surrogate: Surrogate
) -> tuple[Tensor, Tensor]:
    """pi R_p+, and the negative risk R_u- - pi R_p-."""
    loss = _SURROGATES[surrogate]
    positive, unlabeled = at_least_float32(positive), at_least_float32(unlabeled)
    pi = _prior(prior)
    return pi * loss(positive).mean(), loss(-unlabeled).mean() - pi * loss(-positive).mean()


def _prior(prior: float) -> float:
    if not 0 < prior < 1:
        raise ConfigError(
            f"a class prior lies between 0 and 1. Got {prior} instead; estimate it with "
            "`thonecls prior`"
        )
    return prior


# What a pixel costs when it should be positive, by its logit; when negative, by minus its logit.
_SURROGATES: dict[str, Callable[[Tensor], Tensor]] = {
    "sigmoid": lambda z: torch.sigmoid(-z),
    "logistic": lambda z: softplus(-z),
}


def _unlabeled_as_negative(
    loss: Callable[[Tensor], Tensor], positive: Tensor, unlabeled: Tensor, reduction: Reduction
) -> Tensor:
    """A loss of the logit of the wrong class: the means of both kinds added, or one mean of all."""
    on_positive = loss(-at_least_float32(positive))
    on_unlabeled = loss(at_least_float32(unlabeled))
    if reduction == "pooled":
        return torch.cat([on_positive, on_unlabeled]).mean()
    return on_positive.mean() + on_unlabeled.mean()


def find_loss(name: str) -> Callable[..., Tensor]:
    """The loss of a name; options of its own may follow, as in "gce:exponent=0.7".

    Other options than those in the name keep the defaults of the function; the class prior and the
    Taylor order alone come from the settings of training (`SHARED`).

    >>> z = torch.tensor([0.0])
    >>> find_loss("gce:exponent=1.0,reduction=pooled")(z, z).item()
    0.5
    """
    plain, _, options = name.partition(":")
    if plain not in LOSSES:
        raise ConfigError(f"there is no loss {plain!r}: take one of {', '.join(LOSSES)}")
    loss = LOSSES[plain]
    own = [n for n in list(inspect.signature(loss).parameters)[2:] if n not in SHARED]
    given: dict[str, float | str] = {}
    for option in filter(None, options.split(",")):
        key, _, value = option.partition("=")
        if key not in own:
            known = ", ".join(own) or "none"
            raise ConfigError(f"the loss '{plain}' has no option {key!r}: it has {known}")
        try:
            given[key] = float(value)
        except ValueError:
            given[key] = value
    return functools.partial(loss, **given) if given else loss


SHARED = ("order", "prior")  # settings of training that a loss takes if it has such an argument
# -E_p[log f] plus a part of the unlabeled: these two can be shown apart.
ADDITIVE = ("taylor", "variational", "bce")
LOSSES: dict[str, Callable[..., Tensor]] = {
    "taylor": taylor_variational,
    "variational": variational,
    "vpu": vpu,
    "upu": upu,
    "nnpu": nnpu,
    "imb-nnpu": imb_nnpu,
    "abs-negative": abs_negative,
    "oc": oc,
    "oc-warmup": oc_warmup,
    "bce": bce,
    "mae": mae,
    "mse": mse,
    "gce": gce,
    "sce": sce,
    "tce": tce,
    "dist-pu": dist_pu,
}
