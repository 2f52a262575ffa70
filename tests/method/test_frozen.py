"""Frozen statistics: the same map as the live network, and the same map in tiles."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from thonecls.method.frozen import HALO, FrozenNet, freeze, receptive_field
from thonecls.method.masked import SceneNorm
from thonecls.method.net import FreeOCNet

CPU = torch.device("cpu")


def make(seed: int, rows: int, columns: int, bands: int = 3) -> tuple[FreeOCNet, Tensor]:
    """A network whose norms, biases and gates are far from their initial values."""
    torch.manual_seed(seed)
    net = FreeOCNet(bands, width=0.25).eval().requires_grad_(False)
    for parameter in net.parameters():
        parameter.add_(0.2 * torch.randn_like(parameter) * parameter.abs().mean())
    return net, torch.randn(1, bands, rows, columns)


@settings(max_examples=20)
@given(st.integers(0, 5), st.integers(1, 40), st.integers(1, 40))
def test_frozen_equals_live_on_the_training_scene(seed: int, rows: int, columns: int) -> None:
    net, cube = make(seed, rows, columns)
    live = torch.sigmoid(net(cube))[0]
    frozen = torch.sigmoid(FrozenNet(net, freeze(net, cube), CPU)(cube))
    np.testing.assert_allclose(frozen.numpy(), live.numpy(), atol=1e-4)


def test_frozen_equals_live_at_full_width() -> None:
    torch.manual_seed(0)
    net = FreeOCNet(20).eval().requires_grad_(False)
    cube = torch.randn(1, 20, 45, 37)
    frozen = FrozenNet(net, freeze(net, cube), CPU)(cube)
    np.testing.assert_allclose(frozen.numpy(), net(cube)[0].numpy(), atol=1e-5)


def test_statistics_of_windows_are_those_of_one_scene() -> None:
    """Four windows in a batch: norms and gates see the mean over all, not window by window."""
    net, _ = make(0, 8, 8)
    windows = torch.randn(4, 3, 16, 16)
    features = net.stem(windows)
    mean, variance = net.norm.statistics(features, None)
    grouped = features.unflatten(1, (net.norm.num_groups, -1)).transpose(0, 1).flatten(1)
    torch.testing.assert_close(mean, grouped.mean(1))
    torch.testing.assert_close(variance, grouped.var(1, correction=0))
    torch.testing.assert_close(freeze(net, windows)["norm"], torch.stack([mean, variance]))


def test_one_window_equals_native_group_norm() -> None:
    net, _ = make(0, 8, 8)
    features = torch.randn(1, 16, 9, 7)
    valid = torch.ones(1, 1, 9, 7, dtype=torch.bool)
    torch.testing.assert_close(net.norm(features, valid), net.norm(features))
    gate = net.blocks[0].get_submodule("channel")
    torch.testing.assert_close(gate(features, valid), gate(features))


def test_nodata_is_left_out_of_all_statistics() -> None:
    """Whatever stands in invalid pixels far from the valid ones, the logits there are the same."""
    net, cube = make(1, 2 * HALO + 20, 24)
    valid = torch.ones(1, 1, *cube.shape[2:], dtype=torch.bool)
    valid[:, :, HALO + 10 :] = False
    other = cube.clone()
    other[:, :, 2 * HALO + 10 :] = 100.0
    kept = slice(0, HALO // 2)
    torch.testing.assert_close(net(cube, valid)[0, kept], net(other, valid)[0, kept])
    assert not torch.allclose(net(cube)[0, kept], net(other)[0, kept])


def plain_frozen(net: FreeOCNet, statistics: dict[str, Tensor], cube: Tensor) -> Tensor:
    """The network with norms and gates replaced by their frozen values, and nothing folded."""
    handles = []
    for name, module in net.named_modules():
        if name not in statistics:
            continue
        if isinstance(module, SceneNorm):
            scale, shift = module.as_affine(*statistics[name])
        else:
            scale, shift = statistics[name], torch.zeros(())

        def replace(
            _: object,
            inputs: tuple[Tensor],
            __: object,
            scale: Tensor = scale,
            shift: Tensor = shift,
        ) -> Tensor:
            return inputs[0] * scale.view(-1, 1, 1) + shift.view(-1, 1, 1)

        handles.append(module.register_forward_hook(replace))
    logits: Tensor = net(cube)[0]
    for handle in handles:
        handle.remove()
    return logits


def test_frozen_equals_plain_frozen_on_another_scene() -> None:
    net, cube = make(0, 30, 20)
    statistics = freeze(net, cube)
    other = torch.randn(1, 3, 25, 41) * 2 + 1
    found = FrozenNet(net, statistics, CPU)(other)
    np.testing.assert_allclose(found, plain_frozen(net, statistics, other), atol=1e-4)


def test_the_receptive_field_is_exact() -> None:
    """Found by gradients: some logit depends on the pixel at that distance, none further out."""
    reach = 0
    for seed in range(3):
        net, cube = make(seed, 2 * HALO + 32, 4)
        net, cube = net.double(), cube.double()
        statistics = freeze(net, cube)
        cube.requires_grad_()
        logits = plain_frozen(net, statistics, cube)
        for row in range(HALO + 8, HALO + 16):
            (gradient,) = torch.autograd.grad(logits[row].sum(), cube, retain_graph=True)
            touched = gradient.abs().sum((0, 1, 3)).nonzero()[:, 0]
            reach = max(reach, int((touched - row).abs().max()))
    assert reach == receptive_field() <= HALO


@pytest.mark.parametrize("bands", [2, 5])
def test_the_decoder_keeps_its_zero_padding(bands: int) -> None:
    """Biases pass through zero-padded convolutions; near the border they are no constants."""
    net, cube = make(2, 9, 9, bands)
    for name, parameter in net.named_parameters():
        if "laterals" in name and name.endswith("bias"):
            parameter.fill_(3.0)
    frozen = FrozenNet(net, freeze(net, cube), CPU)(cube)
    np.testing.assert_allclose(frozen.numpy(), net(cube)[0].numpy(), atol=2e-4)
