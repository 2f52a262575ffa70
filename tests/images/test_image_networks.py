"""The networks for images and tables: their size, their shapes, and that they run in parts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from thonecls.errors import ConfigError, SceneError
from thonecls.images import IMAGES
from thonecls.images.networks import NETWORKS, StagedNet, scale

SHAPES = {"cifar": (3, 32, 32), "stl": (3, 96, 96), "table": (10,)}


def size(net: nn.Module) -> int:
    return sum(parameter.numel() for parameter in net.parameters())


def convolution(before: int, after: int, kernel: int) -> int:
    return (before * kernel**2 + 1) * after


@pytest.mark.parametrize(
    ("name", "shape", "two", "one"),
    [
        ("cifar", (3, 32, 32), 3_070_284, 3_069_283),
        ("stl", (3, 96, 96), 271_960, 271_875),
        ("cifar", (1, 28, 28), 2_548_556, 2_547_555),
    ],
)
def test_parameter_counts_with_two_outputs_and_one(
    name: str, shape: tuple[int, ...], two: int, one: int
) -> None:
    assert size(NETWORKS[name](shape, outputs=2)) == two
    assert size(NETWORKS[name](shape)) == one


def test_small_grey_images_change_only_the_first_layer_and_the_first_dense_one() -> None:
    colour, grey = NETWORKS["cifar"]((3, 32, 32)), NETWORKS["cifar"]((1, 28, 28))
    sizes = [[size(stage) for stage in net.stages.children()] for net in (colour, grey)]
    differing = [i for i, (one, two) in enumerate(zip(*sizes, strict=True)) if one != two]
    assert differing == [0, 4]
    assert sizes[1][0] == convolution(1, 96, 3)
    assert sizes[1][4] == convolution(10 * 12 * 12, 1000, 1)


@pytest.mark.parametrize(
    ("name", "maps"),
    [
        ("cifar", [(96, 30, 30), (96, 14, 14), (192, 14, 14), (10, 14, 14), (1000,), (1000,)]),
        ("stl", [(6, 47, 47), (6, 45, 45), (16, 20, 20), (32, 8, 8), (120,), (84,)]),
        ("table", [(300,), (300,), (300,)]),
    ],
)
def test_the_features_of_every_stage(name: str, maps: list[tuple[int, ...]]) -> None:
    net = NETWORKS[name](SHAPES[name])
    assert len(net.stages) == len(maps) + 1
    inputs = torch.randn(2, *SHAPES[name])
    for stages, shape in enumerate([SHAPES[name], *maps]):
        features = net.features(inputs, stages)
        assert features.shape == (2, *shape)
        if stages:
            assert features.min() == 0  # ReLU comes after every layer but the last
    assert net(inputs).min() != 0


@pytest.mark.parametrize("outputs", [1, 2])
@pytest.mark.parametrize("name", SHAPES)
def test_a_network_run_in_parts_gives_the_same_logits(name: str, outputs: int) -> None:
    torch.manual_seed(0)
    net = NETWORKS[name](SHAPES[name], outputs=outputs)
    inputs = torch.randn(3, *SHAPES[name])
    whole = net(inputs)
    assert whole.shape == (3,)
    for stages in range(len(net.stages) + 1):
        parts = net.logits(net.features(inputs, stages), stages)
        torch.testing.assert_close(parts, whole, rtol=0, atol=0)
    assert torch.equal(net.features(inputs, 0), inputs)


def test_the_logit_of_two_outputs_is_that_of_their_softmax() -> None:
    net = StagedNet(nn.Identity())
    outputs = torch.tensor([[0.3, 1.7], [4.0, -50.0]])
    torch.testing.assert_close(torch.sigmoid(net(outputs)), torch.softmax(outputs, 1)[:, 1])


def test_gradients_reach_every_parameter() -> None:
    for name, shape in SHAPES.items():
        torch.manual_seed(1)
        net = NETWORKS[name](shape, outputs=2)
        net(torch.randn(4, *shape)).sum().backward()
        assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in net.parameters())


def test_every_dataset_has_a_network_that_takes_its_images() -> None:
    for spec in IMAGES.values():
        images = np.zeros((2, *spec.shape), dtype=np.uint8)
        assert NETWORKS[spec.network](spec.shape)(scale(images)).shape == (2,)


@pytest.mark.parametrize(
    ("name", "shape", "asked", "message"),
    [
        ("cifar", (3, 2, 2), {}, r"inputs of 3×2×2 do not suit this network .*: take another"),
        ("stl", (3, 28, 28), {}, r"inputs of 3×28×28 do not suit"),
        ("cifar", (32,), {}, r"inputs of 32 do not suit"),
        ("table", (5,), {"outputs": 3}, r"has 1 or 2 outputs\. Got 3"),
    ],
)
def test_what_does_not_suit_a_network_is_refused(
    name: str, shape: tuple[int, ...], asked: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        NETWORKS[name](shape, **asked)


def test_scaled_images_lie_between_minus_one_and_one() -> None:
    images = np.arange(256, dtype=np.uint8)
    scaled = scale(images)
    assert scaled.dtype == torch.float32
    assert scaled[[0, -1]].tolist() == [-1, 1]
    expected = torch.from_numpy((images / 255 - 0.5) / 0.5).float()
    torch.testing.assert_close(scaled, expected, rtol=0, atol=1e-6)
    tensor = torch.arange(256, dtype=torch.uint8)
    assert torch.equal(scale(tensor), scaled)
    assert torch.equal(tensor, torch.arange(256, dtype=torch.uint8))
    floats: list[Any] = [scaled, images.astype(np.float32)]
    for wrong in floats:
        with pytest.raises(SceneError, match=r"of uint8 to be scaled\. Got .*float32"):
            scale(wrong)


def test_images_on_disk_are_scaled_without_being_written(tmp_path: Path) -> None:
    path = tmp_path / "images"
    path.write_bytes(bytes(range(12)))
    images = np.memmap(path, dtype=np.uint8, mode="r", shape=(1, 1, 4, 3)).transpose(0, 1, 3, 2)
    scaled = scale(images)
    assert scaled.is_contiguous()
    np.testing.assert_allclose(scaled.numpy(), images / 127.5 - 1, atol=1e-6)
    assert path.read_bytes() == bytes(range(12))
