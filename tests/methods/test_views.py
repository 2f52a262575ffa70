"""T-HOneCls with two views of every image: what a view is, and who sees which."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from simulated import bright_and_dark
from thonecls.errors import ConfigError
from thonecls.images.data import ImageData, ItemBatch, Rows
from thonecls.images.networks import StagedNet, table_net
from thonecls.images.steps import PLAIN
from thonecls.images.views import SHIFT, view_of
from thonecls.method.checkpoint import State
from thonecls.methods.image_training import fit_items, item_settings
from thonecls.methods.images import train_images
from thonecls.methods.views import VIEWS
from thonecls.splits import Labels

CPU = torch.device("cpu")


def test_a_view_is_the_image_mirrored_or_not_and_moved() -> None:
    images = torch.arange(200 * 3 * 32 * 32, dtype=torch.float32).reshape(200, 3, 32, 32)
    seen = view_of(images, torch.Generator().manual_seed(0))
    assert seen.shape == images.shape
    found = set()
    inner = slice(SHIFT, -SHIFT)
    for before, after in zip(images, seen, strict=True):
        row, column = (int(i[0]) for i in torch.where(before[0] == after[0, 16, 16]))
        mirrored = bool(after[0, 16, 17] < after[0, 16, 16])
        down, across = row - 16, (31 - column if mirrored else column) - 16
        whole = before.flip(2) if mirrored else before
        moved = whole.roll((-down, -across), (1, 2))
        assert torch.equal(after[:, inner, inner], moved[:, inner, inner])
        found.add((down, across if not mirrored else -across, mirrored))
    downs, acrosses, mirrors = zip(*found, strict=True)
    reach = set(range(-SHIFT, SHIFT + 1))
    assert set(downs) == set(acrosses) == reach
    assert set(mirrors) == {True, False}


def test_small_images_are_mirrored_alone() -> None:
    images = torch.rand(20, 1, 7, 7)
    seen = view_of(images, torch.Generator().manual_seed(0))
    kept = [torch.equal(a, b) for a, b in zip(images, seen, strict=True)]
    turned = [torch.equal(a, b.flip(2)) for a, b in zip(images, seen, strict=True)]
    assert all(a != b for a, b in zip(kept, turned, strict=True))
    assert any(kept)
    assert any(turned)


def test_student_and_teacher_see_two_views_which_the_batch_decides() -> None:
    seen: list[Tensor] = []

    class Watched(StagedNet):
        def forward(self, inputs: Tensor) -> Tensor:
            seen.append(inputs.detach().clone())
            return super().forward(inputs)

    def make() -> Watched:
        return Watched(*table_net((3, 16, 16)).stages)

    rng = np.random.default_rng(0)
    rows = [Rows(rng.normal(size=(n, 3, 16, 16)).astype(np.float32)) for n in (6, 9)]
    data = ImageData(rows[0], rows[1], make, (4, 5), CPU)
    config = item_settings("t-honecls-views")
    nets = make(), make()
    optimizer = PLAIN.optimizer(nets[0], config)
    state = State(*nets, optimizer, torch.Generator().get_state(), [0.0] * 5)
    batch = data.batches(1, torch.Generator().manual_seed(0))[0]
    losses = [VIEWS.step_losses(state, data, batch, config) for _ in range(2)]
    teacher, student = seen[:2]
    assert teacher.shape == student.shape == (9, 3, 16, 16)
    assert not torch.equal(teacher, student)
    assert torch.equal(teacher, seen[2])
    assert torch.equal(student, seen[3])
    assert losses[0].consistency > 0
    assert torch.equal(losses[0].loss, losses[1].loss)
    other = VIEWS.step_losses(state, data, ItemBatch(*batch[:2], batch.seed + 1), config)
    assert not torch.equal(other.loss, losses[0].loss)


def test_rows_of_a_table_have_no_views() -> None:
    rows = Rows(np.zeros((10, 4), np.float32)), Rows(np.zeros((20, 4), np.float32))
    with pytest.raises(ConfigError, match=r"mirrors and moves images.*take 't-honecls'"):
        fit_items(
            "t-honecls-views",
            *rows,
            lambda: table_net((4,)),
            config=item_settings("t-honecls-views", epochs=1, batches=1),
            generator=torch.Generator().manual_seed(0),
        )


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_the_same_seed_gives_the_same_bits(precision: str) -> None:
    images = bright_and_dark()
    labels = Labels(np.arange(30), np.arange(len(images.train)))

    def weights(seed: int) -> Tensor:
        name = "t-honecls-views"
        model = train_images(name, images, labels, seed, epochs=1, batches=2, precision=precision)
        return torch.cat([p.detach().flatten() for p in model.net.parameters()])

    assert torch.equal(weights(0), weights(0))
    assert not torch.equal(weights(0), weights(1))
