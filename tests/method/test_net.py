"""FreeOCNet: its size, its shapes, and that evaluating at pixels equals evaluating everywhere."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from reference import plain_masked_norm
from thonecls.method.masked import SceneNorm
from thonecls.method.net import ChannelGate, FreeOCNet, SpatialGate


@pytest.mark.parametrize(
    ("bands", "count"), [(270, 2_690_737), (274, 2_693_041), (200, 2_650_417), (103, 2_594_545)]
)
def test_parameter_count(bands: int, count: int) -> None:
    found = sum(p.numel() for p in FreeOCNet(bands).parameters())
    assert found == count == 2_535_217 + 576 * bands


def test_maps_have_strides_one_two_four_eight() -> None:
    maps = FreeOCNet(5, width=0.25).encode(torch.zeros(1, 5, 40, 24))
    assert [tuple(m.shape[2:]) for m in maps] == [(40, 24), (20, 12), (10, 6), (5, 3)]
    assert [m.shape[1] for m in FreeOCNet(5).encode(torch.zeros(1, 5, 8, 8))] == [64, 128, 192, 256]


def test_the_groups_of_the_norms_scale_with_the_width() -> None:
    norms = [m for m in FreeOCNet(5, width=0.5).modules() if isinstance(m, torch.nn.GroupNorm)]
    assert {m.num_groups for m in norms} == {8}
    assert [m.num_channels for m in norms] == [32, 32, 64, 96, 128]


@pytest.mark.parametrize("pixels", [20, 600])
def test_logits_in_half_precision_differ_by_rounding_alone(pixels: int) -> None:
    """With few pixels the decoder is evaluated at each of them, with many everywhere."""
    torch.manual_seed(0)
    net, cube = FreeOCNet(5, width=0.5), torch.randn(1, 5, 30, 30)
    valid = torch.rand(1, 1, 30, 30) > 0.2
    chosen = torch.randperm(900)[:pixels]
    for mask in (None, valid):
        full = net.logits_at(cube, chosen, mask), net.features_at(cube, chosen, mask)
        with torch.autocast("cpu", torch.bfloat16):
            half = net.logits_at(cube, chosen, mask), net.features_at(cube, chosen, mask)
            assert net.readout(half[1]).dtype == torch.float32
        for a, b in zip(full, half, strict=True):
            assert b.dtype == torch.float32
            assert not torch.equal(a, b)
            torch.testing.assert_close(b, a, rtol=0.05, atol=0.05)


def test_spatial_gate_sees_max_then_mean() -> None:
    net = FreeOCNet(2, width=0.25)
    gate = next(m for m in net.modules() if isinstance(m, SpatialGate))
    features = torch.randn(1, 16, 6, 6)
    pooled = torch.stack([features[0].max(0).values, features[0].mean(0)])[None]
    expected = features * torch.sigmoid(
        torch.nn.functional.conv2d(pooled, gate.conv.weight, padding=3)
    )
    torch.testing.assert_close(gate(features), expected)


@settings(max_examples=15)
@given(st.integers(1, 3), st.integers(1, 35), st.integers(1, 35), st.integers(0, 3))
def test_logits_at_pixels_equal_the_whole_map(
    windows: int, height: int, width: int, seed: int
) -> None:
    torch.manual_seed(seed)
    net = FreeOCNet(3, width=0.25).double()
    cube = torch.randn(windows, 3, height, width, dtype=torch.float64)
    whole = net(cube)
    assert whole.shape == (windows, height, width)
    pixels = torch.randint(whole.numel(), (min(40, whole.numel()),))
    torch.testing.assert_close(net.logits_at(cube, pixels), whole.flatten()[pixels])


def test_gradients_at_pixels_equal_those_of_the_whole_map() -> None:
    torch.manual_seed(0)
    net = FreeOCNet(4, width=0.5).double()
    cube = torch.randn(1, 4, 37, 22, dtype=torch.float64)
    pixels = torch.tensor([0, 21, 5, 5, 37 * 22 - 1, 300, 301, 323])
    plain = torch.autograd.grad(net(cube).flatten()[pixels].square().sum(), list(net.parameters()))
    at = torch.autograd.grad(net.logits_at(cube, pixels).square().sum(), list(net.parameters()))
    for expected, found in zip(plain, at, strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-11)


def test_the_decoder_is_linear_in_the_maps_of_the_encoder() -> None:
    torch.manual_seed(0)
    net = FreeOCNet(4, width=0.25).double()

    def decode(maps: list[torch.Tensor]) -> torch.Tensor:
        return net._decode_at(maps, 0, torch.arange(12 * 9), net.head.weight[:, :, 0, 0])

    a, b = (net.encode(torch.randn(1, 4, 12, 9, dtype=torch.float64)) for _ in range(2))
    middle = [(x + y) / 2 for x, y in zip(a, b, strict=True)]
    torch.testing.assert_close(decode(middle), (decode(a) + decode(b)) / 2)


@pytest.mark.parametrize("multiplier", [0.25, 0.5, 1.0])
@pytest.mark.parametrize("size", [(1, 37, 22), (3, 13, 9), (2, 1, 1), (1, 16, 24)])
def test_the_decoder_everywhere_equals_the_decoder_at_pixels(
    size: tuple[int, int, int], multiplier: float
) -> None:
    torch.manual_seed(0)
    windows, height, width = size
    net = FreeOCNet(4, width=multiplier).double()
    maps = net.encode(torch.randn(windows, 4, height, width, dtype=torch.float64))
    pixels = torch.randint(windows * height * width, (60,))  # some of them more than once
    weight, readout = torch.randn(60, dtype=torch.float64), net.head.weight[:, :, 0, 0]
    at = net._decode_at(maps, 0, pixels, readout)[:, 0]
    everywhere = net._decode(maps, 0, readout).flatten().index_select(0, pixels)
    torch.testing.assert_close(everywhere, at, rtol=1e-9, atol=1e-11)
    learnt = [p for name, p in net.named_parameters() if name != "head.bias"]
    expected, found = (
        torch.autograd.grad(logits @ weight, learnt, retain_graph=True)
        for logits in (at, everywhere)
    )
    for a, b in zip(expected, found, strict=True):
        torch.testing.assert_close(b, a, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("count", [1, 2000])
def test_many_pixels_and_few_have_the_logits_of_the_whole_map(count: int) -> None:
    torch.manual_seed(0)
    net = FreeOCNet(3, width=0.5).double()
    cube, valid = torch.randn(2, 3, 33, 46, dtype=torch.float64), torch.rand(2, 1, 33, 46) > 0.3
    pixels = torch.randint(2 * 33 * 46, (count,))
    whole = net(cube, valid).flatten()
    torch.testing.assert_close(net.logits_at(cube, pixels, valid), whole[pixels])


@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last])
@pytest.mark.parametrize("windows", [1, 3])
def test_masked_norms_and_their_gradients_are_those_of_the_valid_pixels(
    windows: int, layout: torch.memory_format
) -> None:
    torch.manual_seed(0)
    norm = SceneNorm(4, 8).double()
    torch.nn.init.normal_(norm.weight)
    torch.nn.init.normal_(norm.bias)
    features = torch.randn(windows, 8, 7, 5, dtype=torch.float64).contiguous(memory_format=layout)
    features.requires_grad_()
    valid, weight = torch.rand(windows, 1, 7, 5) > 0.4, torch.randn_like(features)
    found, expected = norm(features, valid), plain_masked_norm(features, valid, norm)
    torch.testing.assert_close(found, expected)
    inputs = [features, norm.weight, norm.bias]
    for a, b in zip(
        torch.autograd.grad((found * weight).sum(), inputs),
        torch.autograd.grad((expected * weight).sum(), inputs),
        strict=True,
    ):
        torch.testing.assert_close(a, b)


def test_masked_norms_bear_a_mean_far_from_zero() -> None:
    torch.manual_seed(0)
    features, valid = torch.randn(1, 8, 40, 30), torch.rand(1, 1, 40, 30) > 0.4
    norm = SceneNorm(2, 8)
    torch.testing.assert_close(
        norm(features + 1000, valid), norm(features, valid), rtol=0, atol=2e-3
    )


@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last])
@pytest.mark.parametrize("windows", [1, 3])
def test_masked_gates_and_their_gradients_are_those_of_the_valid_pixels(
    windows: int, layout: torch.memory_format
) -> None:
    torch.manual_seed(0)
    gate = ChannelGate(32).double()
    features = torch.randn(windows, 32, 7, 5, dtype=torch.float64).contiguous(memory_format=layout)
    features.requires_grad_()
    valid, weight = torch.rand(windows, 1, 7, 5) > 0.4, torch.randn_like(features)
    known = features.transpose(0, 1)[:, valid[:, 0]]  # (channels, pixels)
    factor = torch.sigmoid(gate.mlp(known.mean(1)) + gate.mlp(known.amax(1)))
    found, expected = gate(features, valid), features * factor[:, None, None]
    torch.testing.assert_close(found, expected)
    inputs = [features, *gate.parameters()]
    for a, b in zip(
        torch.autograd.grad((found * weight).sum(), inputs),
        torch.autograd.grad((expected * weight).sum(), inputs),
        strict=True,
    ):
        torch.testing.assert_close(a, b)


def test_a_masked_step_gives_the_same_bits_again() -> None:
    torch.manual_seed(0)
    net = FreeOCNet(5, width=0.5)
    cube = torch.randn(1, 5, 48, 64).contiguous(memory_format=torch.channels_last)
    valid, pixels = torch.rand(1, 1, 48, 64) > 0.3, torch.randint(48 * 64, (2000,))
    first, second = (
        torch.autograd.grad(
            net.logits_at(cube, pixels, valid).square().sum(), list(net.parameters())
        )
        for _ in range(2)
    )
    assert all(torch.equal(a, b) for a, b in zip(first, second, strict=True))
