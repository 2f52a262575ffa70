"""Training: equal to the plain algorithm, reproducible, and able to learn."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from reference import PlainTrainer, dense_objective
from thonecls.datasets import Dataset, synthetic
from thonecls.errors import ConfigError, LabelError, ModelError, SceneError, TrainingError
from thonecls.method.config import TrainConfig
from thonecls.method.data import logits_at
from thonecls.method.fit import fit
from thonecls.method.loop import SETTLED_OVER
from thonecls.method.losses import LOSSES
from thonecls.method.model import Model
from thonecls.method.net import FreeOCNet
from thonecls.method.procedure import objective
from thonecls.method.progress import EpochMetrics, Progress
from thonecls.method.sampler import pseudo_batches
from thonecls.metrics import evaluate
from thonecls.scene import Scene, band_statistics, standardize
from thonecls.splits import Labels, paper_split

Mask = NDArray[np.bool_]


def weights(model: Model) -> torch.Tensor:
    return torch.cat([p.detach().flatten() for p in model.net.parameters()])


def test_one_step_equals_the_dense_algorithm(tiny: TrainConfig) -> None:
    """Loss, its parts and every parameter's gradient, in float64."""
    torch.manual_seed(0)
    student, teacher = (FreeOCNet(5, width=0.5).double() for _ in range(2))
    cube = torch.randn(5, 23, 30, dtype=torch.float64)
    batch = torch.randperm(23 * 30)[:8], torch.randperm(23 * 30)[:60]
    for config in (tiny, replace(tiny, order=5, beta=2.0), replace(tiny, order=1)):
        plain, consistency = dense_objective(student, teacher, cube, batch, config)
        expected = torch.autograd.grad(plain, list(student.parameters()))
        step_losses = objective(
            student, teacher, lambda net: logits_at(net, cube[None], None, batch), config
        )
        found = torch.autograd.grad(step_losses.loss, list(student.parameters()))
        assert step_losses.loss.item() == pytest.approx(plain.item(), rel=1e-5)
        assert step_losses.consistency.item() == pytest.approx(consistency.item(), rel=1e-5)
        for a, b in zip(found, expected, strict=True):
            torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-8)


def test_twenty_steps_equal_the_dense_algorithm(field_scene: Dataset, tiny: TrainConfig) -> None:
    config = replace(tiny, epochs=5, batches=4, clip=0.5, rate_decay=0.9, unlabeled=80)
    split = paper_split(field_scene.truth, 1, positives=12, unlabeled=80)
    generator = torch.Generator().manual_seed(7)
    model = fit(field_scene.scene, split.labels, config=config, generator=generator)

    generator = torch.Generator().manual_seed(7)
    scene = field_scene.scene
    cube = torch.from_numpy(standardize(scene, band_statistics(scene)))
    nets = []
    for _ in range(2):
        torch.manual_seed(int(torch.randint(2**62, (), generator=generator)))
        nets.append(FreeOCNet(scene.bands, width=config.width))
    plain = PlainTrainer(nets[0], nets[1], config)
    positive, unlabeled = map(torch.from_numpy, (split.labels.positive, split.labels.unlabeled))
    losses = []
    for epoch in range(config.epochs):
        batches = pseudo_batches(positive, unlabeled, config.batches, generator)
        losses.append(np.mean([plain.step(cube, batch, epoch) for batch in batches]))
    np.testing.assert_allclose(model.training["history"]["loss"], losses, rtol=1e-5)
    expected = torch.cat([p.detach().flatten() for p in plain.teacher.parameters()])
    torch.testing.assert_close(weights(model), expected, rtol=1e-5, atol=1e-6)


@pytest.fixture(params=[1, 2])
def threads(request: pytest.FixtureRequest) -> Iterator[int]:
    before = torch.get_num_threads()
    torch.set_num_threads(request.param)
    yield request.param
    torch.set_num_threads(before)


def test_same_seed_same_bits(
    field_scene: Dataset, few_positives: Mask, tiny: TrainConfig, threads: int
) -> None:
    config = replace(tiny, batches=1)

    def train(seed: int) -> Model:
        torch.manual_seed(np.random.default_rng().integers(2**31))  # must not matter
        generator = torch.Generator().manual_seed(seed)
        return fit(field_scene.scene, few_positives, config=config, generator=generator)

    one, same, other = train(1), train(1), train(2)
    assert torch.equal(weights(one), weights(same))
    assert one.training["history"] == same.training["history"]
    assert not torch.equal(weights(one), weights(other))


def test_training_leaves_the_global_random_state_alone(
    field_scene: Dataset, few_positives: Mask, tiny: TrainConfig, generator: torch.Generator
) -> None:
    before = torch.get_rng_state()
    fit(field_scene.scene, few_positives, config=tiny, generator=generator)
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.learning
@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_learns_an_easy_scene(seed: int, precision: Literal["float32", "bfloat16"]) -> None:
    data = synthetic(height=40, width=40, bands=12, seed=1)
    split = paper_split(data.truth, 1, positives=40, unlabeled=400)
    easy = TrainConfig(epochs=20, batches=4, rate=2e-2, width=0.25, device="cpu")
    config = replace(easy, precision=precision)
    generator = torch.Generator().manual_seed(seed)
    model = fit(data.scene, split.labels, config=config, generator=generator)
    scores = evaluate(model.score(data.scene), data.truth == 1, split.test)
    assert scores.f1 > 80  # all positive: 32


@pytest.mark.parametrize("block", [0, 8])
def test_a_step_in_bfloat16_differs_by_rounding_alone(
    field_scene: Dataset, few_positives: Mask, tiny: TrainConfig, block: int
) -> None:
    """Of the whole scene and of a collage; the model is in float32, and so is its score."""
    models = []
    for precision in ("float32", "bfloat16"):
        config = replace(tiny, epochs=1, batches=1, block=block, precision=precision)
        generator = torch.Generator().manual_seed(0)
        models.append(fit(field_scene.scene, few_positives, config=config, generator=generator))
    full, half = (model.score(field_scene.scene) for model in models)
    assert half.dtype == np.float32
    np.testing.assert_allclose(half, full, atol=0.02)
    assert weights(models[1]).dtype == torch.float32
    assert not torch.equal(weights(models[0]), weights(models[1]))
    assert models[1].training["config"]["precision"] == "bfloat16"


def test_history_has_a_figure_for_every_epoch(
    field_scene: Dataset, few_positives: Mask, tiny: TrainConfig, generator: torch.Generator
) -> None:
    model = fit(field_scene.scene, few_positives, config=tiny, generator=generator)
    history = model.training["history"]
    assert list(history) == list(EpochMetrics._fields)
    assert all(len(values) == tiny.epochs for values in history.values())
    parts = [np.array(history[name]) for name in ("loss", "positive", "unlabeled", "consistency")]
    np.testing.assert_allclose(parts[0], parts[1] + parts[2] + tiny.beta * parts[3], rtol=1e-5)
    assert model.training["finished"]


def test_in_the_first_epoch_the_teacher_is_the_student(
    field_scene: Dataset, few_positives: Mask, tiny: TrainConfig, generator: torch.Generator
) -> None:
    """So the consistency is zero from the second step on; in the first the two differ."""
    by_step: list[float] = []

    def note(progress: Progress[Model]) -> None:
        if progress.epoch == 1:
            by_step.append(progress.metrics.consistency * progress.step)

    fit(field_scene.scene, few_positives, config=tiny, generator=generator, on_step=note)
    assert by_step[0] > 0
    assert by_step[1:] == pytest.approx([by_step[0]] * 2, rel=1e-12)


def test_without_beta_the_teacher_is_not_evaluated(tiny: TrainConfig) -> None:
    student, teacher = FreeOCNet(3, width=0.25), FreeOCNet(3, width=0.25)
    teacher.register_forward_pre_hook(lambda *_: pytest.fail("teacher was run"))
    teacher.stem.register_forward_pre_hook(lambda *_: pytest.fail("teacher was run"))
    cube, pixels = torch.randn(1, 3, 9, 9), torch.arange(20)
    step_losses = objective(
        student,
        teacher,
        lambda net: logits_at(net, cube, None, (pixels[:5], pixels)),
        replace(tiny, beta=0.0),
    )
    assert step_losses.consistency == 0
    assert step_losses.loss == step_losses.positive + step_losses.unlabeled


def test_stopping_leaves_a_usable_model(
    field_scene: Dataset, few_positives: Mask, tiny: TrainConfig, generator: torch.Generator
) -> None:
    model = fit(
        field_scene.scene,
        few_positives,
        config=replace(tiny, epochs=50),
        generator=generator,
        on_step=lambda progress: progress.epoch == 2 and progress.step == 1,
    )
    assert not model.training["finished"]
    assert len(model.training["history"]["loss"]) == 1  # whole epochs
    assert np.isfinite(model.score(field_scene.scene)).all()


@pytest.mark.parametrize("momentum", [0.9, 0.0])
def test_training_stopped_at_any_step_resumes_to_the_same_bits(
    field_scene: Dataset, few_positives: Mask, tiny: TrainConfig, tmp_path: Path, momentum: float
) -> None:
    """After every single step, the last of an epoch and the very last included."""
    file = tmp_path / "checkpoint.safetensors"

    def train(stop_after: int | None) -> Model:
        steps = 0

        def stop(_: Progress[Model]) -> bool:
            nonlocal steps
            steps += 1
            return steps == stop_after

        generator = torch.Generator().manual_seed(3)
        return fit(
            field_scene.scene,
            few_positives,
            config=replace(tiny, momentum=momentum),
            generator=generator,
            on_step=stop,
            checkpoint=file,
            resume=True,
        )

    whole = train(None)
    file.unlink()
    assert whole.training["finished"]
    steps = 1
    while not (model := train(1)).training["finished"]:
        steps += 1
    assert steps == tiny.epochs * tiny.batches
    assert torch.equal(weights(model), weights(whole))
    assert model.training["history"] == whole.training["history"]
    np.testing.assert_array_equal(model.score(field_scene.scene), whole.score(field_scene.scene))


def test_a_checkpoint_of_another_training_is_refused(
    field_scene: Dataset, few_positives: Mask, tiny: TrainConfig, tmp_path: Path
) -> None:
    def train(config: TrainConfig, positives: Mask, seed: int = 3) -> Model:
        return fit(
            field_scene.scene,
            positives,
            config=config,
            generator=torch.Generator().manual_seed(seed),
            checkpoint=tmp_path / "c",
            resume=True,
        )

    train(tiny, few_positives)
    other = few_positives.copy()
    other[0, 0] = ~other[0, 0]
    for config, positives in ((replace(tiny, order=3), few_positives), (tiny, other)):
        with pytest.raises(ModelError, match="belongs to another training"):
            train(config, positives)
    with pytest.raises(ModelError, match="belongs to another training"):
        train(tiny, few_positives, seed=4)
    (tmp_path / "c").write_bytes((tmp_path / "c").read_bytes()[:-9])
    with pytest.raises(ModelError, match="damaged"):
        train(tiny, few_positives)


def test_snapshots_do_not_change_as_training_goes_on(
    field_scene: Dataset, few_positives: Mask, tiny: TrainConfig, generator: torch.Generator
) -> None:
    kept: list[Model] = []
    copies: list[torch.Tensor] = []

    def keep(progress: Progress[Model]) -> None:
        kept.append(progress.snapshot())
        copies.append(weights(kept[-1]).clone())

    last = fit(field_scene.scene, few_positives, config=tiny, generator=generator, on_epoch=keep)
    assert len(kept) == tiny.epochs
    assert torch.equal(weights(kept[0]), copies[0])
    assert torch.equal(weights(kept[-1]), weights(last))
    assert not torch.equal(copies[0], copies[1])


def test_nodata_is_neither_sampled_nor_mapped(
    field_scene: Dataset, few_positives: Mask, tiny: TrainConfig, generator: torch.Generator
) -> None:
    valid = np.ones(field_scene.scene.shape, dtype=bool)
    valid[:8] = False
    scene = replace(field_scene.scene, valid=valid)
    model = fit(scene, few_positives, config=tiny, generator=generator)
    assert model.training["positives"] == (few_positives & valid).sum()
    np.testing.assert_array_equal(np.isfinite(model.score(scene)), valid)


def test_both_consistencies_and_decays_and_losses_train(
    field_scene: Dataset, few_positives: Mask, tiny: TrainConfig, generator: torch.Generator
) -> None:
    for change in ({"consistency": "l2"}, {"decay": "constant"}, {"loss": "variational"}):
        config: TrainConfig = replace(tiny, epochs=1, **change)  # type: ignore[arg-type]
        model = fit(field_scene.scene, few_positives, config=config, generator=generator)
        assert np.isfinite(model.training["history"]["loss"]).all()


def test_a_loss_that_is_no_longer_finite_ends_training_with_advice(
    field_scene: Dataset, few_positives: Mask, tiny: TrainConfig, generator: torch.Generator
) -> None:
    config = replace(tiny, epochs=30, rate=1e30, clip=1e30)
    with pytest.raises(TrainingError, match="lower the learning rate"):
        fit(field_scene.scene, few_positives, config=config, generator=generator)


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        ({"order": 0}, "'order' must be 1 or more. Got 0"),
        ({"beta": -0.1}, "'beta' must be 0 or more. Got -0.1"),
        ({"beta": float("nan")}, "'beta' must be 0 or more"),
        ({"epochs": 0}, "'epochs' must be 1 or more"),
        ({"batches": 0}, "'batches' must be 1 or more"),
        ({"unlabeled": 1}, "'unlabeled' must be 2 or more"),
        ({"rate": 0.0}, "'rate' must be above 0"),
        ({"rate_decay": 1.5}, "'rate_decay' must be above 0 and at most 1"),
        ({"clip": -1.0}, "'clip' must be above 0"),
        ({"alpha": 1.0}, "'alpha' must be from 0 to below 1"),
        ({"momentum": 1.0}, "'momentum' must be from 0 to below 1"),
        ({"width": 0.0}, "'width' must be above 0"),
        ({"loss": "hinge"}, "'loss' must be one of taylor, variational, .* Got 'hinge'"),
        ({"settle": 1.0}, "'settle' must be from 0 to below 1"),
        ({"budget": 0}, "'budget' must be 1 or more"),
        ({"consistency": "l1"}, "'consistency' must be one of kl, l2"),
        ({"decay": "step"}, "'decay' must be one of ramp, constant"),
    ],
)
def test_settings_out_of_range_are_refused(change: dict[str, Any], rule: str) -> None:
    with pytest.raises(ConfigError, match=rule):
        TrainConfig(**change)


def test_labels_that_teach_nothing_are_refused(
    field_scene: Dataset, tiny: TrainConfig, generator: torch.Generator
) -> None:
    shape = field_scene.scene.shape
    all_but_one = np.ones(shape, dtype=bool)
    all_but_one[0, 0] = False
    for labels, rule in (
        (np.zeros(shape, dtype=bool), "no positive pixel is labelled"),
        (np.ones(shape, dtype=bool), "every pixel is labelled positive"),
        (all_but_one, "at least 2 unlabeled pixels are needed"),
        (np.ones((4, 5), dtype=bool), "labels have shape"),
        (Labels(np.array([3]), np.array([4])), "at least 2 unlabeled pixels are needed"),
        (Labels(np.array([10**6]), np.arange(9)), "the scene has 378"),
        (Labels(np.array([4]), np.array([-1, 5, 7])), "labels point at pixel -1"),
    ):
        with pytest.raises(LabelError, match=rule):
            fit(field_scene.scene, labels, config=tiny, generator=generator)
    collage = replace(tiny, block=8)
    for labels, rule in (
        (np.zeros(shape, dtype=bool), "no positive pixel is labelled"),
        (np.ones((4, 5), dtype=bool), "labels have shape"),
        (Labels(np.array([10**6]), np.arange(9)), "the scene has 378"),
    ):
        with pytest.raises(LabelError, match=rule):
            fit(field_scene.scene, labels, config=collage, generator=generator)


def test_a_scene_above_the_budget_is_not_seen_whole(
    field_scene: Dataset, few_positives: Mask, tiny: TrainConfig, generator: torch.Generator
) -> None:
    config = replace(tiny, budget=377)
    with pytest.raises(SceneError, match="378 pixels is too large to be seen whole"):
        fit(field_scene.scene, few_positives, config=config, generator=generator)


def test_a_device_that_does_not_exist_is_refused(
    field_scene: Dataset, few_positives: Mask, tiny: TrainConfig, generator: torch.Generator
) -> None:
    config = replace(tiny, device="abacus")
    with pytest.raises(ConfigError, match="the device 'abacus' cannot be used"):
        fit(field_scene.scene, few_positives, config=config, generator=generator)


def test_a_cube_with_a_constant_band_trains(
    field_scene: Dataset, few_positives: Mask, tiny: TrainConfig, generator: torch.Generator
) -> None:
    cube = field_scene.scene.cube.copy()
    cube[2] = 4.25
    model = fit(cube, few_positives, config=tiny, generator=generator)
    assert np.isfinite(model.score(cube)).all()


def test_a_cube_with_nan_is_refused(few_positives: Mask, generator: torch.Generator) -> None:
    cube = np.full((3, *few_positives.shape), np.nan)
    with pytest.raises(SceneError, match="NaN or infinite"):
        fit(cube, few_positives, generator=generator)


@pytest.mark.learning
def test_training_ends_when_the_share_of_the_class_has_settled(
    field_scene: Dataset, few_positives: Mask, tiny: TrainConfig, seed: int
) -> None:
    config = replace(tiny, epochs=40, rate=3e-2, settle=0.2)
    generator = torch.Generator().manual_seed(seed)
    model = fit(field_scene.scene, few_positives, config=config, generator=generator)
    share = model.training["history"]["share"]
    assert SETTLED_OVER < len(share) < 40
    assert model.training["finished"]
    stops = [
        now > before * 0.8**SETTLED_OVER and now <= 0.8 * max(share[: SETTLED_OVER + 1 + i])
        for i, (before, now) in enumerate(zip(share, share[SETTLED_OVER:], strict=False))
    ]
    assert not any(stops[:-1])
    assert stops[-1]


def test_training_does_not_end_before_learning_begins(
    field_scene: Dataset, few_positives: Mask, tiny: TrainConfig, generator: torch.Generator
) -> None:
    """So small a rate leaves the share where it began; that is no sign of a finished map."""
    config = replace(tiny, epochs=8, rate=1e-7, settle=0.02)
    model = fit(field_scene.scene, few_positives, config=config, generator=generator)
    assert len(model.training["history"]["share"]) == 8


@pytest.mark.parametrize(("name", "alpha"), [("mine", 3.0), ("mine:alpha=0.5", 0.5)])
def test_a_loss_added_to_the_catalogue_trains_with_its_own_options(
    field_scene: Dataset,
    few_positives: Mask,
    tiny: TrainConfig,
    generator: torch.Generator,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    alpha: float,
) -> None:
    """The decay of the teacher's average is called alpha, too, and must not be taken for it."""
    seen = []

    def mine(
        positive: torch.Tensor, unlabeled: torch.Tensor, order: int, alpha: float = 3.0
    ) -> torch.Tensor:
        seen.append((order, alpha))
        return unlabeled.square().mean() - positive.mean()

    monkeypatch.setitem(LOSSES, "mine", mine)
    config = replace(tiny, loss=name, epochs=1, order=4)
    assert config.alpha != alpha
    fit(field_scene.scene, few_positives, config=config, generator=generator)
    assert seen == [(4, alpha)] * tiny.batches


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("gce:alpha=1", "the loss 'gce' has no option 'alpha': it has exponent, reduction"),
        ("taylor:order=3", "the loss 'taylor' has no option 'order': it has none"),
    ],
)
def test_an_option_that_a_loss_does_not_have_is_refused(
    field_scene: Dataset,
    few_positives: Mask,
    tiny: TrainConfig,
    generator: torch.Generator,
    name: str,
    message: str,
) -> None:
    with pytest.raises(ConfigError, match=message):
        fit(
            field_scene.scene,
            few_positives,
            config=replace(tiny, loss=name),
            generator=generator,
        )


@pytest.mark.parametrize(
    "area",
    [np.s_[:, 17:18], np.s_[9:16, 9:16], np.s_[1::2, :], np.s_[:, 15:17]],
    ids=["one column", "odd block", "odd rows", "two columns"],
)
def test_odd_valid_areas_train(
    field_scene: Dataset, tiny: TrainConfig, generator: torch.Generator, area: Any
) -> None:
    valid = np.zeros(field_scene.scene.shape, dtype=bool)
    valid[area] = True
    scene = replace(field_scene.scene, valid=valid)
    positives = valid & (np.cumsum(valid.ravel()).reshape(valid.shape) % 4 == 0)
    model = fit(scene, positives, config=tiny, generator=generator)
    np.testing.assert_array_equal(np.isfinite(model.score(scene)), valid)


def test_progress_does_not_count_pixels_without_data(
    field_scene: Dataset, few_positives: Mask, tiny: TrainConfig, generator: torch.Generator
) -> None:
    valid = np.ones(field_scene.scene.shape, dtype=bool)
    valid[:, -3:] = False
    seen: list[int] = []
    fit(
        Scene(field_scene.scene.cube, valid),
        few_positives & valid,
        config=replace(tiny, epochs=1),
        generator=generator,
        on_step=lambda progress: seen.append(progress.pixels),
    )
    assert set(seen) == {int(valid.sum())}
