"""NcPU: its pairs, its prototypes, and labels that are given and taken back."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.functional import normalize

from simulated import bright_and_dark
from thonecls.datasets import synthetic
from thonecls.errors import ConfigError
from thonecls.images.data import ImageData, Rows
from thonecls.images.networks import StagedNet, table_net
from thonecls.method.checkpoint import State
from thonecls.method.config import TrainConfig
from thonecls.method.data import SceneData
from thonecls.method.fit import prepare
from thonecls.method.net import FreeOCNet
from thonecls.methods import METHODS, ncpu
from thonecls.methods.heads import TwoHeads, width_of
from thonecls.methods.image_training import item_settings
from thonecls.methods.images import train_images
from thonecls.methods.ncpu import MEMORY, NcPU, pair_loss, partners, predictor, twins
from thonecls.splits import Labels


def turned(angles: list[float]) -> torch.Tensor:
    """Unit vectors at these angles, in degrees."""
    radians = torch.tensor(angles, dtype=torch.float64) * math.pi / 180
    return torch.stack([radians.cos(), radians.sin()], dim=1)


@pytest.mark.parametrize(("angle", "value"), [(60, math.sqrt(2)), (90, 2), (180, 2 * math.sqrt(2))])
def test_a_pair_costs_twice_the_root_of_what_its_cosine_lacks(angle: float, value: float) -> None:
    assert pair_loss(3 * turned([0]), 5 * turned([angle])).item() == pytest.approx(value)


def test_pairs_that_agree_move_the_network_most() -> None:
    """The gradient falls with the angle, √2 cos(angle / 2); under 2 (1 - cos) it rises at first."""
    pulls = []
    for angle in (1.0, 30.0, 90.0, 150.0):
        x = turned([0]).requires_grad_()
        pair_loss(x, turned([angle])).backward()
        assert x.grad is not None
        pulls.append(x.grad.norm().item())
        assert pulls[-1] == pytest.approx(
            math.sqrt(2) * math.cos(math.radians(angle) / 2), rel=1e-6
        )
    assert pulls == sorted(pulls, reverse=True)


def test_a_pair_of_equals_has_a_finite_gradient() -> None:
    x = turned([20, 40]).requires_grad_()
    pair_loss(x, x.detach()).backward()
    assert x.grad is not None
    assert x.grad.isfinite().all()


def test_partners_are_of_the_same_kind_and_everyone_is_one() -> None:
    kind = torch.from_numpy(np.random.default_rng(0).integers(0, 2, 41))
    found = partners(kind)
    assert torch.equal(kind[found], kind)
    assert torch.equal(found.sort().values, torch.arange(41))
    assert (found != torch.arange(41)).all()


def state(kept: torch.Tensor | None) -> State:
    net = nn.Linear(1, 1)
    memory = {} if kept is None else {MEMORY: kept}
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    return State(net, net, optimizer, torch.zeros(1), [0.0], memory=memory)


def test_prototypes_begin_with_the_mean_of_either_kind() -> None:
    rows = torch.cat([turned([0, 20]), turned([90, 100, 110])]).float()
    now = state(None)
    assert NcPU()._labels_(now, rows, 2, first=True).tolist() == [1, 1, 0, 0, 0]
    means = normalize(torch.stack([rows[2:].mean(0), rows[:2].mean(0)]), dim=1)
    torch.testing.assert_close(now.memory[MEMORY][:2], means)
    assert now.memory[MEMORY][2, 0] == 0.5


def test_what_is_surely_positive_is_no_negative_until_its_features_move() -> None:
    settings = NcPU(momentum=0.5)
    kept = torch.cat([turned([90, 0]), torch.full((1, 2), 0.5, dtype=torch.float64)]).float()
    now = state(kept)
    rows = turned([0, 5, 85, 44]).float()  # a label; like it; unlike it; a little more like it
    assert settings._labels_(now, rows, 1, first=False).tolist() == [1, 1, 0, 0]
    # The threshold is half way from 0.5 to the mean surety of the unlabeled rows.
    p = torch.sigmoid(
        torch.tensor(
            [(math.cos(math.radians(a)) - math.sin(math.radians(a))) / 0.1 for a in (5, 85, 44)]
        )
    )
    usual = torch.maximum(p, 1 - p).mean().item()
    assert now.memory[MEMORY][2, 0].item() == pytest.approx((0.5 + usual) / 2, abs=1e-5)
    moved = turned([0, 44, 8, 85]).float()
    assert settings._labels_(now, moved, 1, first=False).tolist() == [1, 0, 1, 0]


def test_unsure_rows_move_no_prototype() -> None:
    kept = torch.cat([turned([90, 0]), torch.full((1, 2), 0.99, dtype=torch.float64)]).float()
    now = state(kept.clone())
    NcPU(momentum=0.5)._labels_(now, turned([0, 46, 90]).float(), 1, first=False)
    torch.testing.assert_close(now.memory[MEMORY][:2], kept[:2])


@pytest.mark.parametrize(("views", "differ"), [(False, False), (True, True)])
def test_twins_see_one_view_of_an_image_or_two(views: bool, differ: bool) -> None:
    seen: list[torch.Tensor] = []

    class Watched(StagedNet):
        def features(self, inputs: torch.Tensor, stage: int) -> torch.Tensor:
            seen.append(inputs.detach().clone())
            return super().features(inputs, stage)

    def make() -> Watched:
        return Watched(*table_net((3, 16, 16)).stages)

    rng = np.random.default_rng(0)
    rows = [Rows(rng.normal(size=(n, 3, 16, 16)).astype(np.float32)) for n in (6, 9)]
    data = twins(ImageData(rows[0], rows[1], make, (4, 5), torch.device("cpu")))
    nets = [data.new_net(torch.Generator().manual_seed(0)) for _ in range(2)]
    config = item_settings("ncpu")
    optimizer = torch.optim.SGD(nets[0].parameters(), lr=0.1)
    now = State(nets[0], nets[1], optimizer, torch.zeros(1), [0.0])
    batch = data.batches(1, torch.Generator().manual_seed(0))[0]
    NcPU(two_views=views).procedure.step_losses(now, data, batch, config)
    assert len(seen) == 2
    assert torch.equal(*seen) != differ


@pytest.mark.parametrize("block", [0, 8])
def test_logits_are_read_from_the_features(block: int) -> None:
    data = synthetic(height=24, width=24, bands=4)
    config = TrainConfig(width=0.25, unlabeled=50, block=block, device="cpu", random_blocks=4)
    generator = torch.Generator().manual_seed(0)
    scene = prepare(data.scene, data.truth == 1, config, generator)
    net = scene.new_net(generator)
    assert isinstance(net, FreeOCNet)
    (batch, *_) = scene.batches(2, generator)
    for features, logits in zip(scene.features(net, batch), scene.logits(net, batch), strict=True):
        torch.testing.assert_close(net.readout(features), logits, atol=1e-4, rtol=1e-4)


def test_a_twin_depends_on_its_generator_alone_and_leaves_the_global_one() -> None:
    data = synthetic(height=16, width=16, bands=4)
    generator = torch.Generator().manual_seed(0)
    config = TrainConfig(width=0.25, unlabeled=50, device="cpu")
    scene = prepare(data.scene, data.truth == 1, config, generator)
    assert isinstance(scene, SceneData)
    before = torch.get_rng_state()
    one, other = (
        twins(scene).new_net(torch.Generator().manual_seed(3)).state_dict() for _ in range(2)
    )
    assert all(torch.equal(one[name], other[name]) for name in one)
    assert torch.equal(torch.get_rng_state(), before)


def test_the_width_of_a_network_is_what_its_last_layer_reads() -> None:
    assert width_of(FreeOCNet(4, width=0.25)) == 32
    assert width_of(table_net((7,))) == 300
    assert TwoHeads(table_net((7,)), predictor(300))(torch.zeros(5, 7)).shape == (5,)


@pytest.mark.parametrize("change", [{"ema": False}, {"beta": 0.5}])
def test_ncpu_refuses_what_it_has_no_use_for(change: dict[str, Any]) -> None:
    config = METHODS["ncpu"].configure(TrainConfig(), **change)
    with pytest.raises(ConfigError, match="leave 'ema' and 'beta' as they are"):
        ncpu.check("ncpu", config)


@pytest.mark.parametrize("name", ["ncpu", "pul-cpbf", "lbe"])
def test_second_heads_and_what_is_remembered_are_in_float32(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where convolutions are not; an average of small steps would stand still."""
    second, labels_of = TwoHeads.second, NcPU._labels_
    seen: set[torch.dtype] = set()

    def watched(net: TwoHeads, features: torch.Tensor) -> torch.Tensor:
        made = second(net, features)
        seen.update((features.dtype, made.dtype))
        return made

    def remembered(self: NcPU, now: State, *given: Any) -> torch.Tensor:
        kind = labels_of(self, now, *given)
        seen.add(now.memory[MEMORY].dtype)
        return kind

    monkeypatch.setattr(TwoHeads, "second", watched)
    monkeypatch.setattr(NcPU, "_labels_", remembered)
    images = bright_and_dark()
    labels = Labels(np.arange(30), np.arange(len(images.train)))
    weights = []
    for precision in ("float32", "bfloat16"):
        config = item_settings(name, epochs=7, batches=2, precision=precision, prior=0.3)
        net = train_images(name, images, labels, 0, config=config).net
        weights.append(torch.cat([p.detach().flatten() for p in net.parameters()]))
    assert seen == {torch.float32}
    assert not torch.equal(*weights)
