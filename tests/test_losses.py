"""The losses against closed-form values, their gradients, and the paper's inequalities."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from thonecls.errors import ConfigError
from thonecls.losses import LOSSES, positive_loss, taylor_variational, variational

F_U = torch.tensor([0.2, 0.4, 0.6], dtype=torch.float64)
F_P = torch.tensor([0.5, 0.8], dtype=torch.float64)
logits = st.lists(st.floats(-30, 30), min_size=1, max_size=20).map(
    lambda z: torch.tensor(z, dtype=torch.float64)
)
orders = st.integers(1, 12)


def fixture_logits() -> tuple[Tensor, Tensor]:
    return F_P.logit().requires_grad_(), F_U.logit().requires_grad_()


def plain_taylor(positive: Tensor, unlabeled: Tensor, order: int) -> Tensor:
    """The formula as the paper writes it, term by term."""
    s = 1 - torch.sigmoid(unlabeled).mean()
    terms = [-(s**i) / i for i in range(1, order + 1)]
    return torch.stack(terms).sum() - torch.log(torch.sigmoid(positive)).mean()


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
    for loss in LOSSES.values():
        turned = loss(positive.flip(0), unlabeled.flip(0))
        assert turned.item() == pytest.approx(loss(positive, unlabeled).item(), rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("z", [-1000.0, -100.0, 0.0, 100.0, 1000.0])
def test_finite_at_any_logit(name: str, dtype: torch.dtype, z: float) -> None:
    for sign in (1, -1):
        positive = torch.full((3,), z, dtype=dtype, requires_grad=True)
        unlabeled = torch.full((5,), sign * z, dtype=dtype, requires_grad=True)
        value = LOSSES[name](positive, unlabeled)
        value.backward()
        assert value.dtype == torch.float32
        assert value.isfinite()
        assert positive.grad is not None
        assert unlabeled.grad is not None
        assert positive.grad.isfinite().all()
        assert unlabeled.grad.isfinite().all()


@pytest.mark.parametrize("name", LOSSES)
def test_float32_inside_autocast(name: str) -> None:
    positive, unlabeled = (z.detach().float() for z in fixture_logits())
    with torch.autocast("cpu", torch.bfloat16):
        inside = LOSSES[name](positive, unlabeled)
    assert inside.dtype == torch.float32
    assert inside.item() == LOSSES[name](positive, unlabeled).item()


def test_small_s_is_not_lost_to_cancellation() -> None:
    """At f = 1 - 1e-9 in float32, 1 - mean(f) would be exactly 0, and with it the gradient."""
    unlabeled = torch.full((4,), 20.7, requires_grad=True)
    loss = taylor_variational(torch.tensor([50.0]), unlabeled, 1)
    assert -loss.item() == pytest.approx(1 / (1 + math.exp(20.7)), rel=1e-4)


@pytest.mark.parametrize("name", LOSSES)
def test_gradcheck(name: str) -> None:
    assert torch.autograd.gradcheck(LOSSES[name], fixture_logits())


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
