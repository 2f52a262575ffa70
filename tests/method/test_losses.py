"""The losses against closed-form values, their gradients, and the paper's inequalities."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from inspect import signature

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from thonecls.errors import ConfigError
from thonecls.method.losses import (
    LOSSES,
    _beta_quadrature,
    abs_negative,
    bce,
    dist_pu,
    gce,
    imb_nnpu,
    lbe,
    mae,
    mixup_term,
    mse,
    nnpu,
    oc,
    oc_warmup,
    pan_coupling,
    pan_value,
    pan_value_reference,
    pubn,
    pubn_kinds,
    pubn_weight,
    sce,
    tce,
    upu,
    vpu,
)
from thonecls.method.taylor import positive_loss, taylor_variational, variational

F_U = torch.tensor([0.2, 0.4, 0.6], dtype=torch.float64)
F_P = torch.tensor([0.5, 0.8], dtype=torch.float64)
logits = st.lists(st.floats(-30, 30), min_size=1, max_size=20).map(
    lambda z: torch.tensor(z, dtype=torch.float64)
)
orders = st.integers(1, 12)
# Every loss as a function of the logits alone.
READY = {
    name: functools.partial(loss, prior=0.3) if "prior" in signature(loss).parameters else loss
    for name, loss in LOSSES.items()
}


def fixture_logits() -> tuple[Tensor, Tensor]:
    return F_P.logit().requires_grad_(), F_U.logit().requires_grad_()


def plain_taylor(positive: Tensor, unlabeled: Tensor, order: int) -> Tensor:
    """The formula as the paper writes it, term by term."""
    s = 1 - torch.sigmoid(unlabeled).mean()
    step_losses = [-(s**i) / i for i in range(1, order + 1)]
    return torch.stack(step_losses).sum() - torch.log(torch.sigmoid(positive)).mean()


@pytest.mark.parametrize(
    ("order", "value"),
    [
        (1, -0.1418546341),
        (2, -0.3218546341),
        (3, -0.3938546341),
        (4, -0.4262546341),
        (5, -0.4418066341),
        (10, -0.4574056455),
    ],
)
def test_taylor_has_its_closed_form_values(order: int, value: float) -> None:
    assert taylor_variational(*fixture_logits(), order).item() == pytest.approx(value, abs=1e-10)


def test_variational_has_its_closed_form_value() -> None:
    positive, unlabeled = fixture_logits()
    assert variational(positive, unlabeled).item() == pytest.approx(-0.4581453659, abs=1e-10)
    assert positive_loss(positive).item() == pytest.approx(0.4581453659, abs=1e-10)


def test_order_fifty_has_converged_to_the_variational_loss() -> None:
    gap = taylor_variational(*fixture_logits(), 50) - variational(*fixture_logits())
    assert abs(gap.item()) < 3e-13


@pytest.mark.parametrize(
    ("loss", "expected"),
    [
        (lambda p, u: taylor_variational(p, u, 1), [0.0533333, 0.08, 0.08]),
        (lambda p, u: taylor_variational(p, u, 2), [0.0853333, 0.128, 0.128]),
        (lambda p, u: taylor_variational(p, u, 5), [0.1229653, 0.184448, 0.184448]),
        (variational, [0.1333333, 0.2, 0.2]),
    ],
)
def test_gradients_in_logit_space(
    loss: Callable[[Tensor, Tensor], Tensor], expected: list[float]
) -> None:
    positive, unlabeled = fixture_logits()
    loss(positive, unlabeled).backward()
    assert unlabeled.grad is not None
    assert positive.grad is not None
    np.testing.assert_allclose(unlabeled.grad.numpy(), expected, atol=1e-6)
    np.testing.assert_allclose(positive.grad.numpy(), [-0.25, -0.1], atol=1e-12)


@pytest.mark.parametrize(
    ("order", "weight"),
    [(1, 0.3333333), (2, 0.5333333), (3, 0.6533333), (4, 0.7253333), (5, 0.7685333)],
)
def test_weight_of_an_unlabeled_sample(order: int, weight: float) -> None:
    """dL/df_j is the same for every unlabeled sample: (1 - s^o) / sum f (Eq. 16)."""
    positive, unlabeled = fixture_logits()
    taylor_variational(positive, unlabeled, order).backward()
    assert unlabeled.grad is not None
    by_probability = unlabeled.grad / (F_U * (1 - F_U))
    np.testing.assert_allclose(by_probability.numpy(), weight, atol=1e-6)
    assert (1 - 0.6**order) / F_U.sum().item() == pytest.approx(weight, abs=1e-6)


def test_weight_of_an_unlabeled_sample_in_the_variational_loss() -> None:
    """It is 1 / sum f, and has no bound as f falls (Eq. 7)."""
    for scale, weight in ((1.0, 0.8333333), (1e-3, 833.3333)):
        f = scale * F_U
        unlabeled = f.logit().requires_grad_()
        variational(F_P.logit(), unlabeled).backward()
        assert unlabeled.grad is not None
        np.testing.assert_allclose((unlabeled.grad / (f * (1 - f))).numpy(), weight, rtol=1e-6)


@given(logits, logits, orders)
def test_gap_to_the_variational_loss_is_bounded(
    positive: Tensor, unlabeled: Tensor, order: int
) -> None:
    gap = taylor_variational(positive, unlabeled, order) - variational(positive, unlabeled)
    s, m = torch.sigmoid(-unlabeled).mean(), torch.sigmoid(unlabeled).mean()
    assert gap.item() <= (s ** (order + 1) / ((order + 1) * m)).item() + 1e-9


@pytest.mark.parametrize(("order", "slope"), [(1, -0.6), (2, -0.36), (3, -0.216)])
def test_truncation_fixes_the_scale_that_the_variational_loss_leaves_open(
    order: int, slope: float
) -> None:
    log_scale = torch.zeros((), dtype=torch.float64, requires_grad=True)
    scaled = [(f * log_scale.exp()).logit() for f in (F_P, F_U)]
    (found,) = torch.autograd.grad(taylor_variational(scaled[0], scaled[1], order), log_scale)
    assert found.item() == pytest.approx(slope, abs=1e-9)
    scaled = [(f * log_scale.exp()).logit() for f in (F_P, F_U)]
    (found,) = torch.autograd.grad(variational(scaled[0], scaled[1]), log_scale)
    assert found.item() == pytest.approx(0, abs=1e-9)


@given(logits, logits, orders)
def test_horner_equals_the_plain_sum(positive: Tensor, unlabeled: Tensor, order: int) -> None:
    found = taylor_variational(positive, unlabeled, order)
    assert found.item() == pytest.approx(plain_taylor(positive, unlabeled, order).item(), rel=1e-9)


@given(logits, logits, orders)
def test_order_of_the_losses(positive: Tensor, unlabeled: Tensor, order: int) -> None:
    """L_Tar >= L_var, decreasing in the order, its unlabeled part at least -H_o."""
    here = taylor_variational(positive, unlabeled, order).item()
    tolerance = 1e-9
    assert here >= variational(positive, unlabeled).item() - tolerance
    assert taylor_variational(positive, unlabeled, order + 1).item() <= here + tolerance
    harmonic = sum(1 / i for i in range(1, order + 1))
    assert here - positive_loss(positive).item() >= -harmonic - tolerance


@given(logits, logits, orders)
def test_an_unlabeled_sample_weighs_at_most_order_over_count(
    positive: Tensor, unlabeled: Tensor, order: int
) -> None:
    unlabeled = unlabeled.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(taylor_variational(positive, unlabeled, order), unlabeled)
    f = torch.sigmoid(unlabeled.detach())
    assert (gradient <= order / len(f) * f * (1 - f) + 1e-12).all()


@given(logits, logits)
def test_losses_do_not_depend_on_the_order_of_pixels(positive: Tensor, unlabeled: Tensor) -> None:
    for loss in READY.values():
        turned = loss(positive.flip(0), unlabeled.flip(0))
        assert turned.item() == pytest.approx(loss(positive, unlabeled).item(), rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("name", READY)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("z", [-1000.0, -100.0, 0.0, 100.0, 1000.0])
def test_finite_at_any_logit(name: str, dtype: torch.dtype, z: float) -> None:
    for sign in (1, -1):
        positive = torch.full((3,), z, dtype=dtype, requires_grad=True)
        unlabeled = torch.full((5,), sign * z, dtype=dtype, requires_grad=True)
        value = READY[name](positive, unlabeled)
        value.backward()
        assert value.dtype == torch.float32
        assert value.isfinite()
        assert positive.grad is not None
        assert unlabeled.grad is not None
        assert positive.grad.isfinite().all()
        assert unlabeled.grad.isfinite().all()


@pytest.mark.parametrize("name", READY)
def test_float32_inside_autocast(name: str) -> None:
    positive, unlabeled = (z.detach().float() for z in fixture_logits())
    with torch.autocast("cpu", torch.bfloat16):
        inside = READY[name](positive, unlabeled)
    assert inside.dtype == torch.float32
    assert inside.item() == READY[name](positive, unlabeled).item()


def test_small_s_is_not_lost_to_cancellation() -> None:
    """At f = 1 - 1e-9 in float32, 1 - mean(f) would be exactly 0, and with it the gradient."""
    unlabeled = torch.full((4,), 20.7, requires_grad=True)
    loss = taylor_variational(torch.tensor([50.0]), unlabeled, 1)
    assert -loss.item() == pytest.approx(1 / (1 + math.exp(20.7)), rel=1e-4)


@pytest.mark.parametrize("name", READY)
def test_gradcheck(name: str) -> None:
    assert torch.autograd.gradcheck(READY[name], fixture_logits())


@pytest.mark.parametrize("order", [0, -1])
def test_order_below_one_is_refused(order: int) -> None:
    with pytest.raises(ConfigError, match=f"must be 1 or more. Got {order}"):
        taylor_variational(*fixture_logits(), order)


@pytest.mark.parametrize("order", [1, 2, 3, 5, 20])
def test_population_minimiser_is_min_of_one_and_ratio_over_weight(order: int) -> None:
    """On a discrete world the minimiser is f* = min(1, r / w) with w = (1 - s^o) / (1 - s)."""
    of_unlabeled = torch.tensor([20, 15, 15, 10, 10, 10, 10, 6, 4])  # pixels of each kind
    posterior = torch.tensor([0, 2, 5, 10, 20, 35, 50, 80, 97])  # percent
    unlabeled = torch.arange(9).repeat_interleave(of_unlabeled)
    positive = torch.arange(9).repeat_interleave(of_unlabeled * posterior)
    z = torch.zeros(9, dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.LBFGS(
        [z], max_iter=400, tolerance_grad=1e-12, tolerance_change=0, line_search_fn="strong_wolfe"
    )

    def objective() -> Tensor:
        optimizer.zero_grad()
        loss = taylor_variational(z[positive], z[unlabeled], order)
        loss.backward()
        return loss

    optimizer.step(objective)
    f = torch.sigmoid(z).detach()
    s = 1 - f[unlabeled].mean()
    ratio = posterior / (of_unlabeled * posterior).sum() * of_unlabeled.sum()
    weight = (1 - s**order) / (1 - s)
    np.testing.assert_allclose(f.numpy(), (ratio / weight).clamp(max=1).numpy(), atol=1e-4)


@pytest.mark.parametrize(
    ("loss", "value"),
    [
        (lambda p, u: upu(p, u, 0.3), 0.31),
        (lambda p, u: upu(p, u, 0.8), 0.16),
        (lambda p, u: upu(p, u, 0.3, surrogate="logistic"), 0.3421424815),
        (lambda p, u: nnpu(p, u, 0.3), 0.31),
        (lambda p, u: nnpu(p, u, 0.8), 0.28),
        (lambda p, u: imb_nnpu(p, u, 0.3), 0.5 * 0.35 + 0.5 * 0.205 / 0.7),
        (lambda p, u: imb_nnpu(p, u, 0.8), 0.5 * 0.35),  # its negative part is below 0
        (lambda p, u: imb_nnpu(p, u, 0.3, balance=0.3), 0.31),  # nnPU's own
        (lambda p, u: abs_negative(p, u, 0.3), 0.31),
        (lambda p, u: upu(p, u, 0.3) - 0.3 * 0.35, 0.205),  # without the positive risk
        (lambda p, u: upu(p, u, 0.8) - 0.8 * 0.35, -0.12),
        (lambda p, u: oc(p, u, 0.3), 0.3005176720),
        (lambda p, u: oc(p, u, 0.3, weight=1.0), 0.3183922401),
        (lambda p, u: oc(p, u, 0.3, weight=0.0), 0.2928571429),
        (lambda p, u: oc_warmup(p, u, 0.3), 0.3302039019),
        (lambda p, u: oc_warmup(p, u, 0.3, weight=1.0), 0.4183501006),
        (lambda p, u: oc_warmup(p, u, 0.3, weight=0.0), 0.2924269596),
        (lambda p, u: variational(p, u) - positive_loss(p), -0.9162907319),
        (lambda p, u: dist_pu(p, u, 0.4), 0.35),
        (bce, 1.0082320016),
        (mae, 1.5),
        (mse, 0.6633333333),
        (gce, 0.9176947695),
        (lambda p, u: gce(p, u, exponent=0.7), 0.8153578180),
        (sce, 3.0100823200),
        (lambda p, u: tce(p, u, 1), 0.75),
        (lambda p, u: tce(p, u, 2), 0.9158333333),
        (lambda p, u: tce(p, u, 6), 1.0042546944),
    ],
)
def test_closed_form_values_of_the_other_methods(
    loss: Callable[[Tensor, Tensor], Tensor], value: float
) -> None:
    assert loss(*fixture_logits()).item() == pytest.approx(value, abs=1e-10)


@pytest.mark.parametrize(
    ("loss", "value"),
    [
        (bce, 0.5133101278),
        (mae, 0.76),
        (mse, 0.34),
        (gce, 0.4664504764),
        (functools.partial(gce, exponent=0.7), 0.4136375318),
        (sce, 1.5251331013),
        (functools.partial(tce, order=1), 0.38),
        (functools.partial(tce, order=2), 0.465),
        (functools.partial(tce, order=6), 0.5111241000),
    ],
)
def test_pooled_reduction(loss: Callable[..., Tensor], value: float) -> None:
    pooled = loss(*fixture_logits(), reduction="pooled")
    assert pooled.item() == pytest.approx(value, abs=1e-10)


def test_the_gradient_of_nnpu_ascends_where_the_negative_risk_is_below_zero() -> None:
    positive, unlabeled = fixture_logits()
    nnpu(positive, unlabeled, 0.8).backward()
    assert positive.grad is not None
    assert unlabeled.grad is not None
    np.testing.assert_allclose(unlabeled.grad.numpy(), [-0.0533333, -0.08, -0.08], atol=1e-6)
    np.testing.assert_allclose(positive.grad.numpy(), [0.1, 0.064], atol=1e-12)


@given(logits, logits, st.floats(0.05, 0.95))
def test_nnpu_equals_upu_above_zero_and_never_reports_less_than_the_positive_risk(
    positive: Tensor, unlabeled: Tensor, prior: float
) -> None:
    risk = (prior * torch.sigmoid(-positive).mean()).item()
    value, unbiased = (loss(positive, unlabeled, prior).item() for loss in (nnpu, upu))
    assert value >= risk - 1e-9
    assert value == pytest.approx(max(unbiased, risk), abs=1e-9)


def test_dist_pu_with_the_entropy_of_its_warm_up() -> None:
    _, unlabeled = fixture_logits()
    f = torch.sigmoid(unlabeled)
    entropy = -(f * f.log() + (1 - f) * (1 - f).log()).mean()
    total = dist_pu(*fixture_logits(), 0.4) + 2e-3 * entropy
    assert total.item() == pytest.approx(0.3512309505, abs=1e-10)


@given(logits, logits)
def test_label_noise_losses_meet_at_their_limits(positive: Tensor, unlabeled: Tensor) -> None:
    half_mae = mae(positive, unlabeled).item() / 2
    quarter_mse = mse(positive, unlabeled).item() / 4
    assert tce(positive, unlabeled, 1).item() == pytest.approx(half_mae, abs=1e-9)
    assert tce(positive, unlabeled, 2).item() == pytest.approx(half_mae + quarter_mse, abs=1e-9)
    assert gce(positive, unlabeled, exponent=1.0).item() == pytest.approx(half_mae, abs=1e-9)
    assert tce(positive, unlabeled, 9).item() <= bce(positive, unlabeled).item() + 1e-9
    plain = bce(positive, unlabeled).item()
    assert gce(positive, unlabeled, exponent=1e-7).item() == pytest.approx(plain, rel=1e-4)


def test_the_mixup_term_of_vpu() -> None:
    unlabeled = torch.tensor(0.2, dtype=torch.float64).logit()
    log_mixed = torch.tensor(0.5, dtype=torch.float64).log()
    assert mixup_term(0.25, unlabeled, log_mixed).item() == pytest.approx(0.2209, abs=1e-4)


def test_vpu_takes_the_mean_over_pairs_and_over_the_beta_distribution() -> None:
    """Against many random draws of the weight, on the logits of all pairs."""
    positive, unlabeled = (z.detach() for z in fixture_logits())
    weights = np.random.default_rng(0).beta(0.3, 0.3, size=40_000)
    drawn = []
    for g in weights:
        t = g * F_U + (1 - g)
        mixed = torch.sigmoid(g * unlabeled[None, :] + (1 - g) * positive[:, None])
        drawn.append(((t.log()[None, :] - mixed.log()) ** 2).mean().item())
    regular = (vpu(positive, unlabeled, mix=1.0) - variational(positive, unlabeled)).item()
    assert regular == pytest.approx(float(np.mean(drawn)), rel=0.02)
    assert sum(share for _, share in _beta_quadrature()) == pytest.approx(1.0)
    assert sum(share * g for g, share in _beta_quadrature()) == pytest.approx(0.5)


@pytest.mark.parametrize("prior", [0.0, 1.0, -0.2, 1.7, float("nan")])
def test_a_prior_outside_zero_and_one_is_refused(prior: float) -> None:
    for loss in (upu, nnpu, imb_nnpu, abs_negative, oc, dist_pu):
        with pytest.raises(ConfigError, match="a class prior lies between 0 and 1"):
            loss(*fixture_logits(), prior)


D_P, D_U, C_U = (
    torch.tensor(f, dtype=torch.float64).logit()
    for f in ([0.8, 0.6], [0.5, 0.3, 0.2], [0.4, 0.3, 0.1])
)


def test_the_game_of_pan_has_its_closed_form_values() -> None:
    assert pan_coupling(D_U, C_U).item() == pytest.approx(-0.5524179635, abs=1e-10)
    assert pan_value(D_P, D_U, C_U).item() == pytest.approx(-0.7913617213, abs=1e-10)
    assert pan_value_reference(D_P, D_U, C_U).item() == pytest.approx(-0.5368419639, abs=1e-10)
    assert pan_coupling(C_U, C_U).item() == pytest.approx(-0.7259306092, abs=1e-10)  # not PAN


@pytest.mark.parametrize("z", [30.0, 1000.0, -1000.0])
def test_the_reference_game_of_pan_stays_finite_where_d_is_sure(z: float) -> None:
    unlabeled = torch.full((3,), z, requires_grad=True)
    value = pan_value_reference(torch.full((2,), z), unlabeled, torch.full((3,), z))
    value.backward()
    assert value.isfinite()
    assert unlabeled.grad is not None
    assert unlabeled.grad.isfinite().all()


def test_either_player_of_pan_is_moved_by_the_other() -> None:
    probability = torch.tensor([0.5, 0.3, 0.2], dtype=torch.float64, requires_grad=True)
    pan_value(D_P, probability.logit(), C_U).backward()
    own = -1 / (1 - probability.detach()) / 3
    coupling = 1e-4 * 2 * -C_U / 3
    assert probability.grad is not None
    np.testing.assert_allclose(probability.grad.numpy(), (own + coupling).numpy(), atol=1e-12)
    moved = C_U.clone().requires_grad_()
    pan_value(D_P, D_U, moved).backward()
    assert moved.grad is not None
    assert moved.grad.abs().max() > 0


@given(logits)
def test_the_bounded_coupling_of_pan_is_bounded_and_close_to_the_plain_one(z: Tensor) -> None:
    bounded = pan_coupling(torch.full_like(z, 3.0), z, eps=0.01)
    assert abs(bounded.item()) <= math.log(1.01 / 0.01) + 1e-9
    small = z.clamp(-1, 1)
    gap = pan_coupling(small, small, eps=1e-6) - pan_coupling(small, small)
    assert abs(gap.item()) < 1e-5


@given(logits, logits, st.integers(0, 2**16))
def test_a_step_of_lbe_climbs_the_likelihood_of_the_labels(
    positive: Tensor, unlabeled: Tensor, seed: int
) -> None:
    """EM: the gradient is that of the probability h e of a label, although q carries none."""
    random = torch.Generator().manual_seed(seed)
    parts = [positive.clamp(-8, 8), unlabeled.clamp(-8, 8)]
    parts += [torch.randn(len(z), generator=random, dtype=torch.float64) for z in parts]
    for z in parts:
        z.requires_grad_()
    p, u, ep, eu = parts
    found = torch.autograd.grad(lbe(*parts), parts)
    labelled, not_labelled = (torch.sigmoid(a) * torch.sigmoid(b) for a, b in ((p, ep), (u, eu)))
    plain = -labelled.log().mean() - torch.log1p(-not_labelled).mean()
    for one, other in zip(found, torch.autograd.grad(plain, parts), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-6, atol=1e-9)


def test_lbe_has_its_closed_form_value() -> None:
    """h = 1/2, e = 1/2: an unlabeled pixel is positive with 1/3."""
    z = torch.zeros(1, dtype=torch.float64)
    expected = 2 * math.log(2) + math.log(2) * (1 / 3 * 2 + 2 / 3)
    assert lbe(z, z, z, z).item() == pytest.approx(expected)


@pytest.mark.parametrize("big", [1000.0, -1000.0])
def test_lbe_is_finite_where_it_is_sure(big: float) -> None:
    z = torch.tensor([big], requires_grad=True)
    e = torch.tensor([-big], requires_grad=True)
    loss = lbe(z, z, e, e)
    loss.backward()
    assert loss.isfinite()
    for part in (z, e):
        assert part.grad is not None
        assert part.grad.isfinite().all()


# A world of four kinds of pixels, as counts out of twenty: of the class, of what negatives are
# labelled of, and of the rest.
CLASS, KNOWN, REST = (torch.tensor(c) for c in ([4, 2, 0, 0], [0, 2, 3, 0], [1, 1, 2, 5]))


@pytest.mark.parametrize("cut", [0.0, 0.3, 0.7, 0.9])
def test_the_risk_of_pubn_is_the_true_one_wherever_the_cut(cut: float) -> None:
    z = torch.tensor([2.0, 0.5, -0.3, -1.5], dtype=torch.float64)
    sigma = (CLASS + KNOWN) / (CLASS + KNOWN + REST).double()
    p, u, n = (torch.repeat_interleave(z, count) for count in (CLASS, CLASS + KNOWN + REST, KNOWN))
    of_p, of_u, of_n = (
        torch.repeat_interleave(pubn_weight(sigma, cut, labelled=labelled), count)
        for labelled, count in ((True, CLASS), (False, CLASS + KNOWN + REST), (True, KNOWN))
    )
    found = pubn(p, u, n, (of_p, of_u, of_n), prior=6 / 20, known=5 / 20)
    plus, minus = torch.nn.functional.softplus(-z), torch.nn.functional.softplus(z)
    expected = (CLASS * plus + (KNOWN + REST) * minus).sum() / 20
    assert found.item() == pytest.approx(expected.item())


def test_pubn_without_negatives_is_of_positives_and_unlabeled() -> None:
    positive, unlabeled = fixture_logits()
    none = positive[:0]
    kinds = pubn_kinds(positive, unlabeled, none, 0.3, 0.0)
    assert kinds.item() == pytest.approx(
        nnpu(positive, unlabeled, 0.3, surrogate="logistic").item()
    )
    weights = torch.zeros(2), torch.ones(3), torch.zeros(0)
    plain = bce(positive, unlabeled) - 0.7 * positive_loss(positive)
    assert pubn(positive, unlabeled, none, weights, 0.3, 0.0).item() == pytest.approx(plain.item())


def test_both_kinds_of_labels_are_one_class_to_the_first_network_of_pubn() -> None:
    """Kinds of the same share and count: nnPU on their union, with the sum of both shares."""
    positive, unlabeled = fixture_logits()
    negative = torch.tensor([0.3, -0.7], dtype=torch.float64)
    found = pubn_kinds(positive, unlabeled, negative, 0.2, 0.2)
    union = nnpu(torch.cat([positive, negative]), unlabeled, 0.4, surrogate="logistic")
    assert found.item() == pytest.approx(union.item())
