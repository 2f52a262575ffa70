"""Training on images and tables: the methods' formulas, resuming, and what is refused."""

from __future__ import annotations

import math
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from thonecls.errors import ConfigError, LabelError, ModelError
from thonecls.images import IMAGES
from thonecls.images.data import ImageData, ItemBatch, ItemModel, Rows
from thonecls.images.networks import StagedNet, table_net
from thonecls.images.steps import PLAIN, adam, entropy
from thonecls.method.checkpoint import State
from thonecls.method.config import TrainConfig
from thonecls.method.losses import dist_pu
from thonecls.method.progress import Control, Progress
from thonecls.method.taylor import variational
from thonecls.methods import dist_pu as dist_pu_module
from thonecls.methods import vpu as vpu_module
from thonecls.methods.dist_pu import DistPU
from thonecls.methods.image_training import TRAININGS, fit_items, item_settings
from thonecls.methods.images import image_settings
from thonecls.methods.p3mix import P3MIX, P3Mix
from thonecls.methods.vpu import mixing

CPU = torch.device("cpu")
PRIOR = 0.4


def small_net(outputs: int = 1) -> StagedNet:
    return table_net((2,), outputs=outputs)


@pytest.fixture(scope="module")
def table() -> tuple[Rows, Rows, NDArray[np.bool_]]:
    """Two clouds: 40 labelled positives; 200 unlabeled, of which 40 % are positive."""
    rng = np.random.default_rng(1)
    positive = rng.normal(1.5, 1, (40, 2)).astype(np.float32)
    truth = np.arange(200) < 80
    unlabeled = rng.normal(np.where(truth, 1.5, -1.5)[:, None], 1, (200, 2)).astype(np.float32)
    return Rows(positive), Rows(unlabeled), truth


Table = tuple[Rows, Rows, NDArray[np.bool_]]


def train(table: Table, name: str, seed: int = 0, **options: Any) -> ItemModel:
    config = item_settings(name, prior=PRIOR, epochs=3, batches=4, rate=1e-3)
    return fit_items(
        name,
        table[0],
        table[1],
        small_net,
        config=options.pop("config", config),
        generator=torch.Generator().manual_seed(seed),
        **{name: options.pop(name) for name in ("sizes", "mix") if name in options},
        control=Control(**options),
    )


def weights(model: ItemModel) -> torch.Tensor:
    return torch.cat([p.detach().flatten() for p in model.net.parameters()])


@pytest.mark.parametrize("name", sorted(TRAININGS.keys() - {"t-honecls-views"}))  # images alone
def test_same_seed_same_bits(table: Table, name: str) -> None:
    before = torch.get_rng_state()
    one, same, other = train(table, name), train(table, name), train(table, name, seed=1)
    assert torch.equal(weights(one), weights(same))
    assert not torch.equal(weights(one), weights(other))
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize("name", ["taylor", "t-honecls", "dist-pu", "p3mix-e", "p3mix-c"])
def test_training_stopped_at_any_step_resumes_to_the_same_bits(
    table: Table, name: str, tmp_path: Path
) -> None:
    """Adam's averages, the pseudo-labels and the pool included."""
    whole = train(table, name)
    done = 0
    while True:
        steps = 0

        def stop(_: Progress[ItemModel]) -> bool:
            nonlocal steps
            steps += 1
            return True

        file = tmp_path / "checkpoint"
        model = train(table, name, on_step=stop, checkpoint=file, resume=True)
        done += steps
        if model.training["finished"] and not steps:
            break
    assert done == (24 if name == "dist-pu" else 12)
    assert torch.equal(weights(model), weights(whole))


def test_a_batch_holds_no_item_twice_and_all_come_round() -> None:
    rows = Rows(np.zeros((10, 2), dtype=np.float32)), Rows(np.zeros((7, 2), dtype=np.float32))
    data = ImageData(*rows, small_net, (5, 9), CPU)
    batches = data.batches(4, torch.Generator().manual_seed(0))
    assert [len(b.positive) for b in batches] == [5] * 4
    assert [len(b.unlabeled) for b in batches] == [7] * 4  # all there are
    for first, second in (batches[:2], batches[2:]):
        assert sorted(torch.cat([first.positive, second.positive]).tolist()) == list(range(10))
    assert len({b.seed for b in batches}) == 4


def test_a_model_scores_as_its_network_says(table: Table) -> None:
    model = train(table, "taylor")
    items = table[1].items
    with torch.no_grad():
        expected = torch.sigmoid(model.net(torch.from_numpy(items))).numpy()
    np.testing.assert_allclose(model.score(items), expected, rtol=1e-6)
    assert model.training["shape"] == [2]
    assert model.training["positives"] == 40
    assert model.score(items[:0]).shape == (0,)


def data_of(table: Table, sizes: tuple[int, int] = (20, 30)) -> tuple[ImageData, State, ItemBatch]:
    data = ImageData(table[0], table[1], small_net, sizes, CPU)
    generator = torch.Generator().manual_seed(0)
    student, teacher = data.new_net(generator).double(), data.new_net(generator).double()
    config = TrainConfig(prior=PRIOR)
    state = State(student, teacher, adam(student, config), generator.get_state(), [])
    return data, state, data.batches(1, generator)[0]


@pytest.fixture
def double(monkeypatch: pytest.MonkeyPatch) -> None:
    """Items as float64, so that plain references can be compared closely."""
    take = Rows.take
    monkeypatch.setattr(Rows, "take", lambda self, rows, device: take(self, rows, device).double())


def drawn_beta(shape: float, random: torch.Generator) -> float:
    """As a step draws it."""
    seed = int(torch.randint(2**62, (), generator=random))
    return float(np.random.default_rng(seed).beta(shape, shape))


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize("sizes", [(20, 30), (25, 25)])
def test_vpu_equals_its_formula(table: Table, sizes: tuple[int, int]) -> None:
    """Item by item: (log t - log f~)², t = g f(u) + 1 - g, on pairs of the step's own draw."""
    data, state, batch = data_of(table, sizes)
    config = TrainConfig()
    found = mixing(0.5).step_losses(state, data, batch, config)
    x_p, x_u = data.inputs(batch)
    random = torch.Generator().manual_seed(batch.seed)
    g = drawn_beta(0.3, random)
    pairs = torch.randint(len(x_p), (len(x_u),), generator=random)
    if sizes[0] >= sizes[1]:
        pairs = torch.randperm(len(x_p), generator=random)[: len(x_u)]
    f = torch.sigmoid(state.student(x_u))
    total = 0.0
    for i, j in enumerate(pairs.tolist()):
        mixed = torch.sigmoid(state.student((g * x_u[i] + (1 - g) * x_p[j])[None]))[0]
        total += ((torch.log(g * f[i] + 1 - g) - torch.log(mixed)) ** 2).item() / len(x_u)
    plain = variational(state.student(x_p), state.student(x_u)).item()
    assert found.loss.item() == pytest.approx(plain + 0.5 * total, rel=1e-6)


@pytest.mark.usefixtures("double")
def test_dist_pu_equals_its_formulas(table: Table) -> None:
    data, state, batch = data_of(table)
    config = TrainConfig(prior=PRIOR, epochs=60)
    positive, unlabeled = data.logits(state.student, batch)
    f = torch.sigmoid(unlabeled)
    plain_entropy = -(f * f.log() + (1 - f) * (1 - f).log()).mean()
    expected = dist_pu(positive, unlabeled, PRIOR) + 2e-3 * plain_entropy
    found = DistPU().first.step_losses(state, data, batch, config)
    assert found.loss.item() == pytest.approx(expected.item(), rel=1e-6)

    second = DistPU().second
    assert second.on_epoch_start is not None
    second.on_epoch_start(state, data, config)
    everyone = torch.sigmoid(state.student(data.unlabeled.take(slice(None), CPU)))
    torch.testing.assert_close(state.memory["scores"], everyone.detach())
    state.memory["scores"] = torch.linspace(0, 1, 200, dtype=torch.float64)
    state.epoch = 30
    stored = state.memory["scores"].clone()
    found = second.step_losses(state, data, batch, config)
    random = torch.Generator().manual_seed(batch.seed)
    partner = torch.randperm(50, generator=random)
    g = drawn_beta(6.0, random)
    inputs = torch.cat(data.inputs(batch))
    target = torch.cat([torch.ones(20, dtype=torch.float64), stored[batch.unlabeled]])
    q = torch.sigmoid(state.student(g * inputs + (1 - g) * inputs[partner]))
    cross = 0.0
    for weight, t in ((g, target), (1 - g, target[partner])):
        cross += (weight * -(t * q.log() + (1 - t) * (1 - q).log()).mean()).item()
    mixed_entropy = -(q * q.log() + (1 - q) * (1 - q).log()).mean().item()
    rate = (1 - math.cos(math.pi / 4)) * 0.004
    plain = dist_pu(positive, unlabeled, PRIOR).item() + rate * plain_entropy.item()
    assert found.loss.item() == pytest.approx(plain + 0.04 * mixed_entropy + 5 * cross, rel=1e-6)
    torch.testing.assert_close(state.memory["scores"][batch.unlabeled], f.detach())


def spread_(net: torch.nn.Module, data: ImageData) -> None:
    """Change the last layer so that items lie on both sides, some of them beyond every bound."""
    *_, weight, bias = net.parameters()
    with torch.no_grad():
        logits = net(data.unlabeled.take(slice(None), CPU))
        scale = 6 / logits.std()
        bias.sub_(logits.median()).mul_(scale)
        weight.mul_(scale)


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize("name", ["p3mix-e", "p3mix-c"])
@pytest.mark.parametrize("epoch", [0, 10])
def test_p3mix_equals_a_plain_loop(table: Table, name: str, epoch: int) -> None:
    data, state, batch = data_of(table)
    p3mix = P3MIX[name]
    config = TrainConfig()
    for net in (state.student, state.teacher):
        spread_(net, data)
    state.epoch = epoch
    before = [p.clone() for p in state.teacher.parameters()]
    assert p3mix.procedure.on_epoch_start is not None
    p3mix.procedure.on_epoch_start(state, data, config)
    decay = 1 - 1 / epoch if epoch else 1.0
    for old, new, student in zip(
        before, state.teacher.parameters(), state.student.parameters(), strict=True
    ):
        torch.testing.assert_close(new, decay * old + (1 - decay) * student)
    found = p3mix.procedure.step_losses(state, data, batch, config)

    net = state.student
    assert isinstance(net, StagedNet)
    stages = min(p3mix.stages, len(net.stages) - 1)
    random = torch.Generator().manual_seed(batch.seed)
    inputs = torch.cat(data.inputs(batch))
    p = torch.sigmoid(net(inputs))
    assert (p[20:] >= p3mix.bound).any()
    assert (p[20:] <= 1 - p3mix.bound).any()
    target = [1.0] * 20 + [
        1.0 if name == "p3mix-c" and value.item() >= p3mix.bound else 0.0 for value in p[20:]
    ]
    early = torch.sigmoid(state.teacher(inputs)).tolist()
    partner = torch.randperm(50, generator=random).tolist()
    others = [(inputs[j], target[j], early[j]) for j in partner]
    if epoch >= p3mix.start:
        near = [i for i in range(20, 50) if 1 - p3mix.bound < p[i].item() < p3mix.bound]
        assert near
        pool = state.memory["pool"]
        drawn = torch.randint(len(pool), (len(near),), generator=random)
        for i, d in zip(near, drawn.tolist(), strict=True):
            others[i] = (data.positive.take(pool[d : d + 1], CPU)[0], 1.0, 1.0)
    g = drawn_beta(1.0, random)
    g = max(g, 1 - g)
    cross, entropies, regular = [], [], []
    for i, (x, t, e) in enumerate(others):
        mixed = g * net.features(inputs[i : i + 1], stages) + (1 - g) * net.features(
            x[None], stages
        )
        q = min(max(torch.sigmoid(net.logits(mixed, stages)).item(), 1e-4), 1 - 1e-4)
        wanted, trusted = g * target[i] + (1 - g) * t, g * early[i] + (1 - g) * e
        cross.append(-(wanted * math.log(q) + (1 - wanted) * math.log(1 - q)))
        entropies.append(-(q * math.log(q) + (1 - q) * math.log(1 - q)))
        regular.append(math.log(1 - trusted * q - (1 - trusted) * (1 - q)))
    expected = np.mean(cross[:20]) + np.mean(cross[20:]) + 0.1 * np.mean(entropies)
    expected += p3mix.early * np.mean(regular)
    assert found.loss.item() == pytest.approx(expected, rel=1e-6)


def test_the_pool_holds_the_positives_of_most_entropy(table: Table) -> None:
    data, state, _ = data_of(table)
    state.student.float()
    begin = P3Mix(True, bound=0.8, early=0.0, pool=5).procedure.on_epoch_start
    assert begin is not None
    begin(state, data, TrainConfig())
    with torch.no_grad():
        sure = state.student(data.positive.take(slice(None), CPU)).abs()
    assert set(state.memory["pool"].tolist()) == set(torch.argsort(sure)[:5].tolist())


def test_entropy_at_extreme_logits() -> None:
    z = torch.tensor([-1e30, -20.0, 0.0, 3.0, 1e30], dtype=torch.float64, requires_grad=True)
    found = entropy(z)
    assert found[2].item() == pytest.approx(math.log(2))
    f = 1 / (1 + math.exp(-3))
    assert found[3].item() == pytest.approx(-(f * math.log(f) + (1 - f) * math.log(1 - f)))
    found.sum().backward()
    assert z.grad is not None
    assert torch.isfinite(z.grad).all()


def test_the_rate_is_halved_as_published() -> None:
    config = TrainConfig(rate=3e-5)
    assert [PLAIN.rate(config, e) for e in (0, 20, 40, 49)] == [3e-5, 1.5e-5, 7.5e-6, 7.5e-6]


def test_vpu_keeps_the_epoch_of_least_held_out_loss_and_its_scale(
    table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The losses of the held-out items are replaced, so that the second epoch is the best."""
    losses = iter([3.0, 1.0, 2.0])
    monkeypatch.setattr(vpu_module, "_validation_loss", lambda *_: next(losses))
    chosen: list[torch.Tensor] = []
    model = train(table, "vpu", on_epoch=lambda p: chosen.append(weights(p.snapshot())))
    assert not torch.equal(chosen[0], chosen[1])
    assert torch.equal(chosen[1], chosen[2])
    assert torch.equal(weights(model), chosen[1])
    assert 0 < model.ceiling <= 1
    assert model.score(table[1]).max() <= 1
    assert model.training["finished"]
    assert model.training["positives"] == 36  # a tenth is held out


def test_a_stop_at_the_end_of_the_first_phase_is_a_stop(table: Table) -> None:
    seen: list[int] = []

    def stop(progress: Progress[ItemModel]) -> bool:
        seen.append(progress.epoch)
        return progress.epoch == 3 and progress.step == 4

    model = train(table, "dist-pu", on_step=stop)
    assert max(seen) == 3
    assert len(model.training["history"]["loss"]) == 3
    assert not model.training["finished"]


def test_the_second_phase_begins_where_the_first_ended(table: Table) -> None:
    """Its rate is a tenth, so that its first epoch moves the weights less than the one before."""
    told: list[torch.Tensor] = []
    train(table, "dist-pu", on_epoch=lambda p: told.append(weights(p.snapshot())))
    moved = [(after - before).abs().max() for before, after in pairwise(told)]
    assert len(moved) == 5
    assert moved[2] < moved[0] / 2  # new weights would be far off


def test_the_published_constants() -> None:
    """Of vPU, P3MIX and Dist-PU on CIFAR-10, and of the paper's own training on images."""
    plain = item_settings("taylor")
    assert (plain.epochs, plain.batches, plain.rate, plain.order) == (50, 30, 3e-5, 1)
    assert (plain.ema, plain.beta, plain.weight_decay) == (False, 0.0, 0.0)
    assert TRAININGS["taylor"].sizes == (500, 500)
    for name, bound, early in (("p3mix-e", 0.85, 1.0), ("p3mix-c", 0.8, 0.0)):
        config, p3mix = item_settings(name), P3MIX[name]
        assert (config.epochs, config.batches) == (200, 20)
        assert (config.rate, config.weight_decay) == (5e-5, 1e-6)
        assert (p3mix.bound, p3mix.early, p3mix.relabel) == (bound, early, name == "p3mix-c")
        assert (p3mix.pool, p3mix.start, p3mix.stages) == (100, 10, 4)
        assert (p3mix.entropy, p3mix.clamp) == (0.1, 1e-4)
        assert TRAININGS[name].sizes == (512, 512)
        rates = [p3mix.procedure.rate(config, epoch) for epoch in (19, 20, 60, 100, 199)]
        assert rates == [5e-5, 2.5e-5, 6.25e-6, 5e-5 / 32, 5e-5 / 32]
    config = item_settings("dist-pu")
    assert (config.epochs, config.rate, config.weight_decay) == (60, 5e-4, 5e-3)
    assert TRAININGS["dist-pu"].sizes == 256
    assert config.rate * dist_pu_module.SECOND_RATE == pytest.approx(5e-5)
    assert config.weight_decay * dist_pu_module.SECOND_DECAY == pytest.approx(1e-3)
    assert DistPU().first.rate(config, 30) == pytest.approx(2.5e-4)
    assert DistPU().second.rate(config, 60) == pytest.approx(0.7 * config.rate)
    net = small_net()
    assert PLAIN.optimizer(net, plain).param_groups[0]["betas"] == (0.5, 0.99)
    assert DistPU().first.optimizer(net, config).param_groups[0]["betas"] == (0.9, 0.999)
    of_vpu = {
        name: (spec.mix, image_settings("vpu", name).rate, image_settings("taylor", name).order)
        for name, spec in IMAGES.items()
    }
    assert of_vpu["cifar10"] == (0.03, 3e-5, 1)
    assert of_vpu["stl10"] == (0.3, 1e-4, 3)
    assert of_vpu["fashion-mnist"] == of_vpu["mnist"] == (0.3, 3e-4, 1)
    assert image_settings("taylor", "fashion-mnist").rate == 3e-4  # of all methods
    assert image_settings("taylor", "cifar10").rate == 3e-5


@pytest.mark.parametrize("other", ["network", "method", "unlabeled"])
def test_a_checkpoint_of_other_training_is_refused(
    table: Table, other: str, tmp_path: Path
) -> None:
    """Also where the settings are the same."""
    kept: dict[str, Any] = {"checkpoint": tmp_path / "c", "resume": True}
    config = item_settings("p3mix-e", epochs=1, batches=1)
    train(table, "p3mix-e", config=config, **kept)
    if other == "unlabeled":
        table = table[0], Rows(table[1].items + 1), table[2]
    with pytest.raises(ModelError, match="belongs to another training"):
        fit_items(
            "p3mix-c" if other == "method" else "p3mix-e",
            table[0],
            table[1],
            partial(small_net, 2) if other == "network" else small_net,
            config=config,
            generator=torch.Generator().manual_seed(0),
            control=Control(**kept),
        )


def test_items_that_teach_nothing_are_refused(table: Table) -> None:
    none = Rows(table[0].items, np.arange(0))
    with pytest.raises(LabelError, match="no item is labelled positive"):
        train((none, table[1], table[2]), "taylor")
    with pytest.raises(LabelError, match="at least 2 unlabeled"):
        train((table[0], none, table[2]), "taylor")
    with pytest.raises(ConfigError, match="there is no method 'hinge'"):
        item_settings("hinge")
    with pytest.raises(ConfigError, match="needs the class prior"):
        train(table, "nnpu", config=item_settings("nnpu"))


def test_tce_keeps_its_order_and_oc_its_first_epochs() -> None:
    assert item_settings("tce").order == 6
    assert item_settings("oc").warmup == 20
    assert item_settings("oc").warmup_loss == "oc-warmup"
