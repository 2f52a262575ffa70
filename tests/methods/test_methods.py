"""The catalogue: every method keeps the same contract."""

from __future__ import annotations

import warnings
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from thonecls.datasets import Dataset, synthetic
from thonecls.errors import ConfigError, LabelError, TrainingError
from thonecls.images.steps import beta_draw
from thonecls.method.checkpoint import State
from thonecls.method.config import PAPER, TrainConfig
from thonecls.method.fit import fit, prepare
from thonecls.method.loop import run
from thonecls.method.losses import dist_pu, pan_coupling, pan_value
from thonecls.method.model import Model
from thonecls.method.procedure import Procedure, new_optimizer
from thonecls.method.progress import Control
from thonecls.methods import METHODS, pan, resolve_prior
from thonecls.methods.catalogue import as_markdown
from thonecls.methods.dist_pu import DistPU
from thonecls.methods.p3mix import P3MIX
from thonecls.methods.spectral import NETWORKS
from thonecls.metrics import evaluate, find_degenerate
from thonecls.scene import Scene
from thonecls.splits import Labels, draw_labels

QUICK = TrainConfig(
    epochs=14, batches=4, unlabeled=250, width=0.25, rate=2e-2, rate_decay=1.0, device="cpu"
)
# F1. A map that is positive everywhere has 52, one that is negative everywhere 0.
FLOORS = dict.fromkeys(METHODS, 75.0) | {
    "t-honecls": 90.0,
    "taylor": 90.0,
    "bce": 50.0,  # loses recall: the class is in the unlabeled, as negatives
}
# AUC, where what is above 0.5 still comes and goes while the order of the pixels is learnt.
ORDERED = {"pan": 80.0, "pan-reference": 75.0}
ORDERED["variational-spectra"] = 90.0  # its loss leaves the scale of probabilities open
# A game goes back and forth: the steps are bounded, also where the loss is a sum, and end small.
GAME: dict[str, Any] = {"epochs": 40, "rate": 5e-3, "clip": 1.0, "schedule": "cosine"}
# At the common rate these swing: what a test sees is where they happen to be in the last epoch.
SUITED: dict[str, dict[str, Any]] = {
    "variational": {"rate": 5e-3},
    "sce": {"rate": 5e-3},
    "pan": GAME,
    "pan-reference": GAME,
    "pul-cpbf": {"epochs": 20},  # of which the fence takes five
}
# From some initialisations their sigmoid has no gradient: they begin with cross-entropy.
COLD = ("nnpu", "imb-nnpu", "dist-pu", "dist-pu-full")
INSTALLED = {"maxent": "elapid", "elkan-noto": "pulearn", "pu-bagging": "pulearn"}
INSTALLED |= {"puet-spectra": "numba"}
ON_SPECTRA = [f"{loss}-spectra" for loss in NETWORKS]


@pytest.fixture(scope="module")
def easy() -> Dataset:
    return synthetic(height=26, width=24, bands=8, fields=12, seed=5)


@pytest.fixture(scope="module")
def labels(easy: Dataset) -> Labels:
    few = np.zeros(easy.scene.shape, dtype=bool)
    few.flat[np.flatnonzero(easy.truth == 1)[::4]] = True
    return draw_labels(few, easy.scene.valid, 250, np.random.default_rng(0))


def score(
    name: str,
    scene: Scene,
    labels: Labels,
    seed: int = 0,
    *,
    epochs: int = QUICK.epochs,
    **change: Any,
) -> np.ndarray[Any, Any]:
    if name in INSTALLED:
        pytest.importorskip(INSTALLED[name])
    method = METHODS[name]
    options: dict[str, Any] = {"config": replace(QUICK, epochs=epochs)} if method.network else {}
    if method.needs_prior:
        options["prior"] = 0.35
    if name in ON_SPECTRA:
        options |= {"epochs": min(epochs, 12), "batches": 4}
    if name in COLD:
        options["config"] = replace(QUICK, epochs=epochs + 6, warmup=6)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return method(scene, labels, seed, **options, **change)


@pytest.mark.learning
@pytest.mark.parametrize("name", METHODS)
def test_every_method_learns_an_easy_scene(
    name: str, easy: Dataset, labels: Labels, seed: int
) -> None:
    found = score(name, easy.scene, labels, seed, **SUITED.get(name, {}))
    assert found.shape == easy.scene.shape
    assert found.dtype == np.float32
    assert ((found >= 0) & (found <= 1)).all()
    scores = evaluate(found, easy.truth == 1)
    if name in ORDERED:
        assert scores.auc >= ORDERED[name]
    else:
        assert scores.f1 >= FLOORS[name]


@pytest.mark.parametrize("name", METHODS)
def test_a_seed_gives_the_same_map_in_whatever_order_labels_come(
    name: str, easy: Dataset, labels: Labels
) -> None:
    rng = np.random.default_rng(1)
    shuffled = Labels(rng.permutation(labels.positive), rng.permutation(labels.unlabeled))
    one, other = (score(name, easy.scene, given, epochs=1) for given in (labels, shuffled))
    np.testing.assert_allclose(other, one, atol=1e-5)


@pytest.mark.parametrize("name", METHODS)
def test_nodata_is_nan_and_nothing_else_is(name: str, easy: Dataset, labels: Labels) -> None:
    valid = np.ones(easy.scene.shape, dtype=bool)
    valid[:3, :5] = False
    cube = easy.scene.cube.copy()
    cube[:, ~valid] = np.nan
    kept = Labels(*(part[valid.flat[part]] for part in (labels.positive, labels.unlabeled)))
    found = score(name, Scene(cube, valid), kept, epochs=1)
    np.testing.assert_array_equal(np.isnan(found), ~valid)


@pytest.mark.parametrize("name", [name for name, m in METHODS.items() if m.needs_prior])
def test_a_method_that_needs_a_prior_says_so(name: str, easy: Dataset, labels: Labels) -> None:
    with pytest.raises(ConfigError, match="needs the class prior"):
        METHODS[name](easy.scene, labels, config=QUICK)
    if not METHODS[name].network:
        return
    config = METHODS[name].configure(QUICK)
    with pytest.raises(ConfigError, match="needs the class prior"):
        fit(easy.scene, labels, config=config, generator=torch.Generator())


def test_a_prior_may_be_a_number_or_an_estimator(easy: Dataset, labels: Labels) -> None:
    assert resolve_prior(0.3, easy.scene, labels) == 0.3
    for name in ("km1", "km2", "bbe"):
        assert 0 < resolve_prior(name, easy.scene, labels) < 1
    with pytest.raises(ConfigError, match="no estimator of the prior is called 'guess'"):
        resolve_prior("guess", easy.scene, labels)  # type: ignore[arg-type]


def test_labels_that_teach_nothing_are_refused_by_all(easy: Dataset, labels: Labels) -> None:
    for name in METHODS:
        with pytest.raises(LabelError):
            score(name, easy.scene, Labels(labels.positive[:0], labels.unlabeled))


def test_every_card_is_filled_in() -> None:
    for method in METHODS.values():
        assert method.minimises
        assert method.paper


def test_the_docs_show_the_catalogue_as_it_is() -> None:
    page = Path(__file__).parents[2] / "docs" / "methods.md"
    assert as_markdown() in page.read_text("utf-8"), "run benchmarks/render.py"


def test_settings_of_a_method_lie_on_top_of_a_preset() -> None:
    config = METHODS["tce"].configure(PAPER)
    assert (config.loss, config.order, config.beta, config.ema) == ("tce", 6, 0, False)
    assert (config.rate, config.epochs) == (PAPER.rate, PAPER.epochs)
    assert METHODS["t-honecls"].configure(PAPER) == PAPER
    assert METHODS["oc"].configure(PAPER).warmup == 20
    assert METHODS["gce"].configure(PAPER, epochs=7).epochs == 7
    assert METHODS["pan-as-run"].configure(PAPER) == METHODS["bce"].configure(PAPER)
    assert METHODS["sam"].configure(PAPER, unlabeled=9).unlabeled == 9


def test_the_teacher_is_a_setting_of_any_loss(easy: Dataset, labels: Labels) -> None:
    """None, EMA, EMA + L2, EMA + KL: four results of the same loss."""
    maps = []
    for change in (
        {"ema": False, "beta": 0.0},
        {"ema": True, "beta": 0.0},
        {"ema": True, "beta": 0.5, "consistency": "l2"},
        {"ema": True, "beta": 0.5, "consistency": "kl"},
    ):
        config = replace(QUICK, epochs=3, loss="gce", **change)
        generator = torch.Generator().manual_seed(0)
        maps.append(fit(easy.scene, labels, config=config, generator=generator).score(easy.scene))
    for i, one in enumerate(maps):
        for other in maps[:i]:
            assert np.abs(one - other).max() > 1e-6
    with pytest.raises(ConfigError, match="'beta' must be 0 where there is no teacher"):
        replace(QUICK, ema=False)


def test_the_warm_up_has_a_loss_of_its_own(easy: Dataset, labels: Labels) -> None:
    config = METHODS["bce"].configure(QUICK, epochs=3)
    plain, warmed, other = (
        fit(easy.scene, labels, config=c, generator=torch.Generator().manual_seed(0))
        for c in (
            config,
            replace(config, loss="mse", warmup=3, warmup_loss="bce"),
            replace(config, loss="mse"),
        )
    )
    np.testing.assert_array_equal(warmed.score(easy.scene), plain.score(easy.scene))
    assert np.abs(other.score(easy.scene) - plain.score(easy.scene)).max() > 1e-6


def test_vpu_scales_by_its_largest_probability_and_keeps_that(
    easy: Dataset, labels: Labels, tmp_path: Any
) -> None:
    config = METHODS["vpu"].configure(QUICK, epochs=4)
    generator = torch.Generator().manual_seed(0)
    model = METHODS["vpu"].train(easy.scene, labels, config=config, generator=generator)
    assert 0 < model.ceiling < 1
    found = model.score(easy.scene)
    assert found.max() <= 1
    plain = replace(model, ceiling=1.0).score(easy.scene)
    np.testing.assert_allclose(found, np.minimum(plain / model.ceiling, 1), rtol=1e-5)
    model.save(tmp_path / "m.safetensors")
    loaded = Model.load(tmp_path / "m.safetensors")
    np.testing.assert_array_equal(loaded.score(easy.scene), found)


def test_a_map_that_says_the_same_everywhere_is_noticed(easy: Dataset, labels: Labels) -> None:
    full, empty = np.full(easy.scene.shape, 0.9, np.float32), np.zeros(easy.scene.shape, np.float32)
    assert "is mapped as the class" in str(find_degenerate(full, labels.positive))
    assert "labelled pixels themselves" in str(find_degenerate(empty, labels.positive))
    good = (easy.truth == 1).astype(np.float32)
    assert find_degenerate(good, labels.positive) is None


@pytest.mark.learning
def test_a_method_warns_of_a_map_without_the_labels(
    easy: Dataset, labels: Labels, seed: int
) -> None:
    with pytest.warns(UserWarning, match="labelled pixels themselves are not mapped"):
        METHODS["nnpu"](easy.scene, labels, seed, prior=0.001, config=QUICK)


def test_a_map_of_the_labels_alone_is_noticed(easy: Dataset, labels: Labels) -> None:
    learnt = np.zeros(easy.scene.shape, np.float32)
    learnt.flat[labels.positive] = 1
    assert "memorised" in str(find_degenerate(learnt, labels.positive))
    # As a sample of a larger map, it may still be right.
    assert find_degenerate(learnt, labels.positive, pixels=1000) is None


def train(method: str, easy: Dataset, labels: Labels, seed: int = 0, **options: Any) -> Model:
    """A few epochs; options: for `Method.train`, or settings."""
    passed = {
        name: options.pop(name)
        for name in ("on_step", "on_epoch", "checkpoint", "resume")
        if name in options
    }
    prior = {"prior": 0.35} if METHODS[method].needs_prior else {}
    config = METHODS[method].configure(QUICK, **{"epochs": 4, **prior, **options})
    generator = torch.Generator().manual_seed(seed)
    return METHODS[method].train(
        easy.scene, labels, config=config, generator=generator, control=Control(**passed)
    )


@pytest.mark.parametrize(
    "method", ["vpu", "pan", "pan-reference", "ncpu", "p3mix-e", "dist-pu-full", "pubn"]
)
def test_a_training_that_was_killed_goes_on_to_the_same_bits(
    method: str, easy: Dataset, labels: Labels, tmp_path: Path
) -> None:
    whole = train(method, easy, labels)
    assert whole.training["finished"]
    path = tmp_path / "kept"
    for stop in (2, 7, 11):
        steps = iter(range(100))
        part = train(
            method,
            easy,
            labels,
            checkpoint=path,
            resume=True,
            on_step=lambda _, steps=steps, stop=stop: next(steps) == stop,
        )
        assert not part.training["finished"] or stop == 11
    again = train(method, easy, labels, checkpoint=path, resume=True)
    assert again.training["finished"]
    np.testing.assert_array_equal(again.score(easy.scene), whole.score(easy.scene))
    assert again.ceiling == whole.ceiling


def test_vpu_takes_the_epoch_with_the_least_held_out_loss(easy: Dataset, labels: Labels) -> None:
    told = []
    model = train(
        "vpu",
        easy,
        labels,
        epochs=12,
        on_epoch=lambda progress: told.append(progress.snapshot()),
    )
    chosen = [snapshot.training["selected_epoch"] for snapshot in told]
    assert chosen == sorted(chosen)
    assert model.training["selected_epoch"] == chosen[-1]
    assert len(model.training["history"]["loss"]) == 12
    first = told[chosen[-1] - 1]
    np.testing.assert_array_equal(model.score(easy.scene), first.score(easy.scene))


def test_vpu_needs_two_labels_and_may_be_stopped_at_once(easy: Dataset, labels: Labels) -> None:
    with pytest.raises(LabelError, match="sets labelled pixels apart"):
        train("vpu", easy, Labels(labels.positive[:1], labels.unlabeled))
    model = train("vpu", easy, labels, on_step=lambda _: True)
    assert not model.training["finished"]
    assert 0 < model.ceiling <= 1


@pytest.mark.parametrize("method", ["vpu", "pan", "nnpu", "t-honecls", "ncpu", "pubn", "p3mix-c"])
def test_networks_train_on_collages_too(easy: Dataset, labels: Labels, method: str) -> None:
    model = train(method, easy, labels, epochs=2, block=8)
    assert "places" in model.training
    assert model.training["finished"]
    assert ("selected_epoch" in model.training) == (method == "vpu")


def test_the_game_of_pan_is_that_of_two_networks_by_turns(easy: Dataset, labels: Labels) -> None:
    """Against a plain game: two networks, two optimisers, two losses."""
    config = METHODS["pan"].configure(QUICK, epochs=4)
    data = prepare(easy.scene, labels, config, torch.Generator().manual_seed(0))
    generator = torch.Generator().manual_seed(1)
    model = run(
        pan.Game(data),
        config=config,
        generator=generator,
        procedure=Procedure(step_losses=partial(pan._game_losses, pan_value)),
    )
    generator = torch.Generator().manual_seed(1)
    c, d, _, _ = (data.new_net(generator) for _ in range(4))
    optimizers = [new_optimizer(net, config) for net in (c, d)]
    for epoch in range(config.epochs):
        for batch in data.batches(config.batches, generator):
            c_logits, d_logits = data.logits(c, batch), data.logits(d, batch)
            if epoch % 2 == 0:
                value = pan_value(*d_logits, c_logits[1].detach(), eps=0.01)
                loss, optimizer = -value, optimizers[1]
            else:
                loss = pan_coupling(d_logits[1].detach(), c_logits[1], 0.01)
                optimizer = optimizers[0]
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    for (name, ours), plain in zip(model.net.named_parameters(), c.parameters(), strict=True):
        torch.testing.assert_close(ours, plain, rtol=1e-4, atol=1e-6, msg=name)


@pytest.mark.parametrize(
    "change", [{"ema": True}, {"ema": True, "beta": 0.5}, {"loss": "gce"}, {"warmup": 3}]
)
def test_pan_refuses_what_it_has_no_use_for(
    change: dict[str, Any], easy: Dataset, labels: Labels
) -> None:
    with pytest.raises(ConfigError, match="a game of two networks"):
        train("pan", easy, labels, **change)


@pytest.mark.learning
def test_a_warm_up_is_over_before_a_map_can_settle(
    easy: Dataset, labels: Labels, seed: int
) -> None:
    model = train("oc", easy, labels, seed, prior=0.35, epochs=40, settle=0.5, warmup=9)
    assert 9 + 3 < len(model.training["history"]["loss"]) < 40


def test_a_prior_may_come_with_the_settings(easy: Dataset, labels: Labels) -> None:
    config = replace(QUICK, epochs=2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # two epochs map nothing
        given = METHODS["nnpu"](easy.scene, labels, config=config, prior=0.3)
        within = METHODS["nnpu"](easy.scene, labels, config=replace(config, prior=0.3))
    np.testing.assert_array_equal(within, given)


def test_pusb_maps_the_share_that_the_prior_says(easy: Dataset, labels: Labels) -> None:
    for prior in (0.1, 0.4):
        model = train("pusb", easy, labels, prior=prior)
        data = prepare(easy.scene, labels, replace(QUICK, prior=prior), torch.Generator())
        assert (
            torch.sigmoid(data.all_logits(model.net)[1]) > model.threshold
        ).double().mean().item() == pytest.approx(prior, abs=1 / 250)


def test_the_selected_epoch_is_that_of_the_least_held_out_loss(
    easy: Dataset, labels: Labels
) -> None:
    told: list[Model] = []
    model = train(
        "t-honecls-selected",
        easy,
        labels,
        epochs=6,
        on_epoch=lambda progress: told.append(progress.snapshot()),
    )
    chosen = model.training["selected_epoch"]
    assert model.ceiling == 1.0
    assert len(model.training["history"]["loss"]) == 6
    np.testing.assert_array_equal(model.score(easy.scene), told[chosen - 1].score(easy.scene))


@pytest.mark.learning
def test_known_negatives_move_the_map_of_pubn(easy: Dataset, labels: Labels, seed: int) -> None:
    """Of one other class, which is like the target to a network that has seen few epochs."""
    others = np.flatnonzero(easy.truth == 2)[::3]
    told = replace(labels, negative=others)
    with_them = train("pubn", easy, told, seed, epochs=8)
    assert 0 < with_them.training["known_share"] <= 0.9 * 0.65
    assert len(with_them.training["history"]["loss"]) == 16
    without = train("pubn", easy, labels, seed, epochs=8)
    assert without.training["known_share"] == 0
    there = easy.truth == 2
    assert (
        with_them.score(easy.scene)[there].mean() < without.score(easy.scene)[there].mean() + 0.02
    )
    assert evaluate(with_them.score(easy.scene), easy.truth == 1).auc > 90


def test_pubn_stopped_in_its_first_half_is_no_map(easy: Dataset, labels: Labels) -> None:
    """With negatives: so far it tells both kinds of labels from the rest."""
    told = replace(labels, negative=np.flatnonzero(easy.truth == 2)[::3])
    with pytest.raises(TrainingError, match="stopped before it began"):
        train("pubn", easy, told, epochs=2, on_step=lambda _: True)
    assert not train("pubn", easy, labels, epochs=2, on_step=lambda _: True).training["finished"]


def one_step(easy: Dataset, labels: Labels, epoch: int) -> tuple[Any, State, Any]:
    """Data, a state in this epoch, and a batch."""
    data = prepare(easy.scene, labels, QUICK, torch.Generator().manual_seed(0))
    generator = torch.Generator().manual_seed(1)
    student, teacher = data.new_net(generator), data.new_net(generator)
    optimizer = new_optimizer(student, QUICK)
    state = State(student, teacher, optimizer, generator.get_state(), [], epoch=epoch, step=2)
    return data, state, data.batches(4, generator)[0]


def test_the_second_phase_of_dist_pu_mixes_logits(easy: Dataset, labels: Labels) -> None:
    data, state, batch = one_step(easy, labels, epoch=30)
    config = replace(QUICK, epochs=40, prior=0.35)
    found = DistPU().on_scenes.step_losses(state, data, batch, config)
    with torch.no_grad():
        positive, unlabeled = (z.double() for z in data.logits(state.student, batch))
        scores = torch.sigmoid(data.logits(state.teacher, batch)[1].double())
    random = torch.Generator().manual_seed(2**32 * 30 + 2)
    z, t = torch.cat([positive, unlabeled]), torch.cat([torch.ones(len(positive)), scores])
    partner = torch.randperm(len(z), generator=random)
    g = beta_draw(6.0, random)
    q, u = torch.sigmoid(g * z + (1 - g) * z[partner]), torch.sigmoid(unlabeled)

    def cross(q: torch.Tensor, t: torch.Tensor) -> torch.Tensor:
        return -(t * q.log() + (1 - t) * (1 - q).log()).mean()

    growing = (1 - np.cos(10 / 20 * np.pi / 2)) * 4e-3
    plain = dist_pu(positive, unlabeled, 0.35) + growing * cross(u, u) + 0.04 * cross(q, q)
    plain = plain + 5 * (g * cross(q, t) + (1 - g) * cross(q, t[partner]))
    assert found.loss.item() == pytest.approx(plain.item(), rel=1e-4)


@pytest.mark.parametrize("name", sorted(P3MIX))
@pytest.mark.parametrize("epoch", [0, 10])
def test_p3mix_on_a_scene_equals_a_plain_loop(
    name: str, epoch: int, easy: Dataset, labels: Labels
) -> None:
    data, state, batch = one_step(easy, labels, epoch)
    p3mix = P3MIX[name]
    found = p3mix.on_scenes.step_losses(state, data, batch, QUICK)
    with torch.no_grad():
        z = torch.cat(data.logits(state.student, batch)).double()
        early = torch.sigmoid(torch.cat(data.logits(state.teacher, batch)).double()).tolist()
    count, p = len(batch[0]), torch.sigmoid(z).tolist()
    random = torch.Generator().manual_seed(2**32 * epoch + 2)
    target = [
        float(i < count or (name == "p3mix-c" and p[i] >= p3mix.bound)) for i in range(len(z))
    ]
    partner = torch.randperm(len(z), generator=random).tolist()
    others = [(z[j].item(), target[j], early[j]) for j in partner]
    if epoch:
        near = [i for i in range(count, len(z)) if 1 - p3mix.bound < p[i] < p3mix.bound]
        assert near
        unsure = sorted(range(count), key=lambda i: abs(z[i].item()))[: -(-count // 2)]
        for i, d in zip(
            near, torch.randint(len(unsure), (len(near),), generator=random), strict=True
        ):
            others[i] = (z[unsure[int(d)]].item(), 1.0, 1.0)
    g = beta_draw(1.0, random)
    g = max(g, 1 - g)
    cross, extra = [], 0.0
    for i, (other, t, e) in enumerate(others):
        q = 1 / (1 + np.exp(-(g * z[i].item() + (1 - g) * other)))
        wanted = g * target[i] + (1 - g) * t
        cross.append(-wanted * np.log(q) - (1 - wanted) * np.log(1 - q))
        extra -= 0.1 * (q * np.log(q) + (1 - q) * np.log(1 - q)) / len(z)
        kept = g * early[i] + (1 - g) * e
        extra += p3mix.early * np.log(1 - kept * q - (1 - kept) * (1 - q)) / len(z)
    plain = np.mean(cross[:count]) + np.mean(cross[count:]) + extra
    assert found.loss.item() == pytest.approx(plain, rel=1e-4)
