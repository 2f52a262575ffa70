"""FreeOCNet: its size, its shapes, and that evaluating at pixels equals evaluating everywhere."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from thonecls.net import FreeOCNet, SpatialGate


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
