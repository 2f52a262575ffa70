"""PUL-CPBF: where the fence stands, what it tells, and labels that are drawn by it."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.functional import softplus

from thonecls.images.data import ImageData, Rows
from thonecls.images.networks import table_net
from thonecls.images.steps import adam
from thonecls.method.checkpoint import State
from thonecls.methods.cpbf import (
    CPBF,
    FENCE,
    LABELLED,
    boundaries,
    fence_loss,
    posterior,
    with_fence,
)
from thonecls.methods.image_training import item_settings

CPU = torch.device("cpu")


def test_each_classifier_of_the_fence_is_a_half_where_the_posterior_is_its_boundary() -> None:
    """Least loss in a world of five kinds of pixels, by gradient descent: f = α r / (1 + α r)."""
    share = torch.tensor([0.1, 0.2, 0.3, 0.25, 0.15], dtype=torch.float64)
    likely = torch.tensor([0.02, 0.3, 0.45, 0.62, 0.93], dtype=torch.float64)
    prior = float((share * likely).sum())
    positive = share * likely / prior
    logits = torch.zeros(5, FENCE, dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.LBFGS([logits], max_iter=500, line_search_fn="strong_wolfe")

    def loss() -> torch.Tensor:
        optimizer.zero_grad()
        penalties = prior / boundaries()
        of_positive = (positive[:, None] * softplus(-logits)).sum(0)
        of_unlabeled = (share[:, None] * softplus(logits)).sum(0)
        total = (penalties * of_positive + of_unlabeled).mean()
        total.backward()
        return total

    optimizer.step(loss)
    ratio = likely[:, None] / boundaries()
    torch.testing.assert_close(
        torch.sigmoid(logits).detach(), ratio / (1 + ratio), atol=1e-4, rtol=0
    )
    middle = posterior(logits.detach())
    assert ((middle - likely).abs() <= 0.5 / (FENCE + 1) + 1e-9).all()


def test_the_loss_is_that_of_rows_as_of_a_world() -> None:
    rng = np.random.default_rng(0)
    positive, unlabeled = (torch.from_numpy(rng.normal(size=(n, FENCE))) for n in (7, 30))
    by_hand = np.mean(
        [
            0.2 / boundary * np.logaddexp(0, -positive[:, k].numpy()).mean()
            + np.logaddexp(0, unlabeled[:, k].numpy()).mean()
            for k, boundary in enumerate(np.arange(1, FENCE + 1) / (FENCE + 1))
        ]
    )
    assert fence_loss(positive, unlabeled, 0.2).item() == pytest.approx(by_hand, rel=1e-6)


def test_labels_are_drawn_after_the_warm_up_and_a_step_repeats_them() -> None:
    rng = np.random.default_rng(0)
    rows = [Rows(rng.normal(size=(n, 4)).astype(np.float32)) for n in (20, 60)]
    data = with_fence(ImageData(rows[0], rows[1], lambda: table_net((4,)), (20, 60), CPU))
    config = item_settings("pul-cpbf", prior=0.3)
    net = data.new_net(torch.Generator().manual_seed(0))
    assert isinstance(net.head, nn.Linear)
    state = State(net, net, adam(net, config), torch.Generator().get_state(), [0.0])
    batch = data.batches(1, torch.Generator().manual_seed(0))[0]
    first = CPBF.step_losses(state, data, batch, config)
    ends = data.features(net, batch)
    by_hand = fence_loss(net.head(ends[0]), net.head(ends[1]), 0.3)
    torch.testing.assert_close(first.loss, by_hand)
    state.epoch = config.warmup
    one, other = (CPBF.step_losses(state, data, batch, config) for _ in range(2))
    assert torch.equal(one.loss, other.loss)
    state.step = 1
    assert not torch.equal(CPBF.step_losses(state, data, batch, config).loss, one.loss)
    features = data.features(net, batch)
    z = net.readout(features[1])
    likely = posterior(net.head(features[1]))
    of_labels = LABELLED * softplus(-net.readout(features[0])).mean()
    expected = (likely * softplus(-z) + (1 - likely) * softplus(z)).mean() + of_labels
    losses = []
    for state.step in range(200):
        losses.append(CPBF.step_losses(state, data, batch, config).loss.item())
    error = np.std(losses) / np.sqrt(len(losses))
    assert np.mean(losses) == pytest.approx(expected.item(), abs=5 * error)
    with torch.no_grad():
        net.head.weight.mul_(-1)  # the fence is what it was when the warm-up ended
    state.step = 0
    assert CPBF.step_losses(state, data, batch, config).loss.item() == losses[0]
