"""The EMA schedule and update, and the two consistency step_losses."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from thonecls.method.teacher import (
    constant_decay,
    ema_update_,
    kl_consistency,
    l2_consistency,
    ramped_decay,
)


class Normed(nn.Module):
    """A network with parameters, float buffers and an integer buffer."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(2, 3)
        self.norm = nn.BatchNorm1d(3)


numbers = st.floats(-12, 12)


@pytest.mark.parametrize(
    ("epoch", "decay"),
    [
        (0, 0),
        (1, 0.5),
        (2, 2 / 3),
        (3, 0.75),
        (9, 0.9),
        (49, 0.98),
        (98, 0.989898989899),
        (99, 0.99),
        (1000, 0.99),
    ],
)
def test_decay_ramps_with_the_epochs(epoch: int, decay: float) -> None:
    assert ramped_decay(epoch, 0.99) == pytest.approx(decay, abs=1e-12)
    assert constant_decay(epoch, 0.99) == 0.99


def test_update_averages_parameters_and_buffers_in_place() -> None:
    teacher, student = Normed(), Normed()
    assert isinstance(student.norm.running_mean, torch.Tensor)
    assert isinstance(student.norm.num_batches_tracked, torch.Tensor)
    student.norm.running_mean.fill_(4.0)
    student.norm.num_batches_tracked.fill_(7)
    before = teacher.linear.weight.detach().clone()
    place = teacher.linear.weight.data_ptr()
    ema_update_(teacher, student, 0.75)
    expected = 0.75 * before + 0.25 * student.linear.weight
    torch.testing.assert_close(teacher.linear.weight.detach(), expected.detach())
    state = teacher.state_dict()
    assert state["norm.running_mean"].tolist() == [1.0, 1.0, 1.0]
    assert state["norm.num_batches_tracked"].item() == 7
    assert teacher.linear.weight.data_ptr() == place


def test_decay_zero_copies_the_student_bit_by_bit() -> None:
    teacher, student = nn.Linear(50, 50), nn.Linear(50, 50)
    ema_update_(teacher, student, 0.0)
    assert torch.equal(teacher.weight, student.weight)
    assert torch.equal(teacher.bias, student.bias)


@pytest.mark.parametrize(("p", "q", "value"), [(0.7, 0.4, 0.3758288905), (0.9, 0.1, 3.5155593237)])
def test_kl_has_its_closed_form_values(p: float, q: float, value: float) -> None:
    student, teacher = (torch.tensor([x], dtype=torch.float64).logit() for x in (p, q))
    assert kl_consistency(student, teacher).item() == pytest.approx(value, abs=1e-9)


def test_kl_of_logits_and_its_gradient() -> None:
    student = torch.tensor([2.0], dtype=torch.float64, requires_grad=True)
    value = kl_consistency(student, torch.tensor([-1.0], dtype=torch.float64))
    value.backward()
    assert student.grad is not None
    assert value.item() == pytest.approx(1.8355669698, abs=1e-9)
    assert student.grad.item() == pytest.approx(0.9268364128, abs=1e-9)


def test_kl_is_a_mean_over_positive_and_unlabeled_pixels_together() -> None:
    student = torch.tensor([0.7, 0.3, 0.9], dtype=torch.float64).logit()
    teacher = torch.tensor([0.4, 0.3, 0.1], dtype=torch.float64).logit()
    assert kl_consistency(student, teacher).item() == pytest.approx(1.2971294048, abs=1e-9)


@given(numbers, numbers)
def test_kl_equals_the_definition_and_is_symmetric(a: float, b: float) -> None:
    student, teacher = (torch.tensor([z], dtype=torch.float64) for z in (a, b))
    p, q = (
        np.array([torch.sigmoid(-z).item(), torch.sigmoid(z).item()]) for z in (student, teacher)
    )
    definition = float((p * np.log(p / q)).sum() + (q * np.log(q / p)).sum())
    assert kl_consistency(student, teacher).item() == pytest.approx(definition, abs=1e-8)
    assert kl_consistency(teacher, student).item() == pytest.approx(definition, abs=1e-8)


def test_no_value_and_no_gradient_where_student_and_teacher_agree() -> None:
    for term in (kl_consistency, l2_consistency):
        student = torch.tensor([-3.0, 0.0, 5.0], requires_grad=True)
        value = term(student, student.detach().clone())
        value.backward()
        assert value.item() == 0
        assert student.grad is not None
        assert (student.grad == 0).all()


def test_kl_is_finite_at_extreme_logits() -> None:
    student = torch.tensor([1000.0, -1000.0], requires_grad=True)
    value = kl_consistency(student, torch.tensor([-1000.0, 1000.0]))
    value.backward()
    assert student.grad is not None
    assert value.item() == 2000
    assert student.grad.isfinite().all()


def test_l2_compares_probabilities() -> None:
    student, teacher = (torch.tensor(p).logit() for p in ([0.7, 0.5], [0.4, 0.5]))
    assert l2_consistency(student, teacher).item() == pytest.approx(0.045)
