"""FreeOCNet with the statistics of its training scene frozen: local, exact in tiles, and fast.

The norms and the channel attention of FreeOCNet look at the whole scene. `freeze` records what
they saw there; `FrozenNet` uses these records in their place, as batch norm does after training.
From then on a logit depends on the pixels within `HALO` of it and on nothing else. The frozen
norms and gates fold into the convolutions before them, and the linear decoder collapses.
"""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import conv2d, interpolate

from thonecls.method.masked import SceneNorm
from thonecls.method.net import ChannelGate, FreeOCNet

STRIDE = 8  # of the coarsest level; windows must start at its multiples
Affine = tuple[Tensor, Tensor | None]  # weight and bias of a convolution
MANY = 128  # bands: beyond, moving them last in memory costs more than the stem gains by it
ATTENTION, KERNEL = 3, 1  # reach of the 7×7 and of the 3×3 convolutions


def freeze(net: FreeOCNet, cube: Tensor, valid: Tensor | None = None) -> dict[str, Tensor]:
    """What every norm and channel gate sees of a scene, by the name of its module.

    cube: (N, C, H, W), as for `FreeOCNet.encode`. A norm gives (2, groups), mean and variance; a
    gate gives (channels,).
    """
    found: dict[str, Tensor] = {}

    def listen(name: str) -> Any:
        def hook(module: nn.Module, inputs: tuple[Tensor, Tensor | None], _: Tensor) -> None:
            if isinstance(module, SceneNorm):
                found[name] = torch.stack(module.statistics(*inputs))
            elif isinstance(module, ChannelGate):
                found[name] = module.gate(*inputs)

        return hook

    parts = {n: m for n, m in net.named_modules() if isinstance(m, SceneNorm | ChannelGate)}
    handles = [module.register_forward_hook(listen(name)) for name, module in parts.items()]
    try:
        with torch.no_grad():
            net.encode(cube, valid)
    finally:
        for handle in handles:
            handle.remove()
    return found


def average(found: list[dict[str, Tensor]]) -> dict[str, Tensor]:
    """The statistics of several parts of a scene as one: `freeze` of each, of equal weight."""
    together = {name: torch.stack([part[name] for part in found]) for name in found[0]}
    averaged = {name: values.mean(0) for name, values in together.items()}
    for name, values in together.items():
        if values.ndim == 3:  # means and variances: the means' own spread is part of the variance
            averaged[name][1] += values[:, 0].var(0, correction=0)
    return averaged


class FrozenNet:
    """A trained network with frozen statistics: (1, C, H, W) z-scored cube -> (H, W) logits."""

    def __init__(self, net: FreeOCNet, statistics: dict[str, Tensor], device: torch.device) -> None:
        self.device = device
        # Folded in float64: what is rounded is the result, once.
        net = copy.deepcopy(net).cpu().double()
        frozen = {name: s.cpu().double() for name, s in statistics.items()}

        def folded(conv: str, norm: str | None, gate: str | None) -> tuple[Tensor, Tensor]:
            """A convolution with the frozen norm and gate that follow it.

            The gate may be folded through the ReLU between them, as it is positive.
            """
            weight, bias = (net.get_parameter(f"{conv}.{name}") for name in ("weight", "bias"))
            scale, shift = torch.ones_like(bias), torch.zeros_like(bias)
            if norm is not None:
                module = net.get_submodule(norm)
                assert isinstance(module, SceneNorm)
                scale, shift = module.as_affine(*frozen[norm])
            if gate is not None:
                scale, shift = scale * frozen[gate], shift * frozen[gate]
            folded_weight = weight * scale[:, None, None, None]
            return _ready(folded_weight, device), _ready(bias * scale + shift, device)

        levels = range(len(net.blocks))
        weight, bias = folded("stem", "norm", "blocks.0.channel")
        if weight.shape[1] > MANY:
            weight = weight.contiguous()
        self.inputs = [(weight, bias)]
        self.inputs += [folded(f"downs.{i - 1}", None, f"blocks.{i}.channel") for i in levels[1:]]
        self.spatial = [
            _ready(net.get_parameter(f"blocks.{i}.spatial.conv.weight"), device) for i in levels
        ]
        self.convs = [folded(f"blocks.{i}.conv", f"blocks.{i}.norm", None) for i in levels]
        self.decoder = _collapse(net.state_dict(), device)

    def __call__(self, cube: Tensor) -> Tensor:
        maps: list[Tensor] = []
        features = _channels_last(cube) if cube.shape[1] <= MANY else cube.contiguous()
        for level, (enter, spatial, conv) in enumerate(
            zip(self.inputs, self.spatial, self.convs, strict=True)
        ):
            features = conv2d(features, *enter, stride=1 if level == 0 else 2, padding=1)
            features = _channels_last(features).relu_()
            pooled = torch.cat([features.amax(1, keepdim=True), features.mean(1, keepdim=True)], 1)
            features.mul_(conv2d(pooled, spatial, padding=3).sigmoid_())
            features = conv2d(features, *conv, padding=1).relu_()
            maps.append(features)
        return self._decode(maps)

    def _decode(self, maps: list[Tensor]) -> Tensor:
        """The collapsed decoder.

        Level 1 needs of level 2 only its products with the nine taps of the kernel that the head
        and the last convolution make together: nine channels in place of 128.
        """
        d = self.decoder
        top = conv2d(conv2d(maps[3], *d["lateral.3"]), *d["smooth.3"], padding=1)
        merged = conv2d(maps[2], *d["lateral.2"]) + _above(top, maps[2])
        top = conv2d(merged, *d["smooth.2"], padding=1)
        taps = conv2d(maps[1], *d["lateral.1"], padding=1)
        taps += conv2d(_above(top, maps[1]), *d["smooth.1"], padding=1)
        taps += conv2d(torch.ones_like(taps[:, :1]), *d["border.1"], padding=1)
        logits = conv2d(maps[0], *d["lateral.0"], padding=1)
        logits += conv2d(_above(taps, maps[0]), *d["smooth.0"], padding=1)
        logits += conv2d(torch.ones_like(logits), *d["border.0"], padding=1)
        return logits[0, 0]


def _collapse(p: dict[str, Tensor], device: torch.device) -> dict[str, Affine]:
    """Products of the decoder's linear maps, in float64; the zero padding of each is kept.

    A bias that passes through a zero-padded convolution is no constant near the border, so it
    becomes a kernel on a map of ones.
    """
    head = p["head.weight"][0, :, 0, 0]
    first = torch.einsum("o,oikl->ikl", head, p["smooths.0.weight"])  # head after smooth 0
    taps = first.flatten(1)  # (width, 9)
    second = torch.einsum("ot,oikl->tikl", taps, p["smooths.1.weight"])
    laterals = [p[f"laterals.{i}.weight"][:, :, 0, 0] for i in range(2)]
    biases = [p[f"laterals.{i}.bias"] for i in range(2)]
    collapsed: dict[str, Affine] = {
        "lateral.0": (
            torch.einsum("ikl,ij->jkl", first, laterals[0])[None],
            (head @ p["smooths.0.bias"])[None] + p["head.bias"],
        ),
        "smooth.0": (torch.eye(9, dtype=head.dtype).view(1, 9, 3, 3), None),  # tap t at place t
        "border.0": (torch.einsum("ikl,i->kl", first, biases[0])[None, None], None),
        "lateral.1": (
            torch.einsum("tikl,ij->tjkl", second, laterals[1]),
            taps.T @ p["smooths.1.bias"],
        ),
        "smooth.1": (second, None),
        "border.1": (torch.einsum("tikl,i->tkl", second, biases[1])[:, None], None),
    }
    for i in (2, 3):
        for name in ("lateral", "smooth"):
            collapsed[f"{name}.{i}"] = (p[f"{name}s.{i}.weight"], p[f"{name}s.{i}.bias"])
    return {
        name: (_ready(weight, device), None if bias is None else _ready(bias, device))
        for name, (weight, bias) in collapsed.items()
    }


def _above(coarse: Tensor, fine: Tensor) -> Tensor:
    """A coarser map brought to the size of a finer one by nearest neighbours."""
    return interpolate(coarse, scale_factor=2)[:, :, : fine.shape[2], : fine.shape[3]]


def _ready(tensor: Tensor, device: torch.device) -> Tensor:
    return _channels_last(tensor.detach().to(device, torch.float32))


def _channels_last(tensor: Tensor) -> Tensor:
    """Maps and kernels with their channels last in memory: faster without gradients."""
    fits = tensor.dim() == 4
    return tensor.contiguous(memory_format=torch.channels_last if fits else torch.contiguous_format)


def receptive_field(levels: int = 4) -> int:
    """How far an input pixel can lie from a logit that it influences, at most.

    Walks back through the layers from one output pixel, whatever its place in the stride.
    """
    return max(_reach(pixel, levels) for pixel in range(STRIDE))


def _reach(pixel: int, levels: int) -> int:
    wanted: list[tuple[int, int]] = []  # of each level's encoder map
    low = high = pixel
    for _ in range(levels):  # down the decoder: smooth, then lateral and the level above
        low, high = low - KERNEL, high + KERNEL
        wanted.append((low, high))
        low, high = low // 2, high // 2
    low, high = wanted[-1]
    for level in reversed(range(levels)):  # back up the encoder: block, then the strided entry
        low, high = min(low, wanted[level][0]), max(high, wanted[level][1])
        low, high = low - KERNEL - ATTENTION, high + KERNEL + ATTENTION
        stride = 2 if level else 1
        low, high = stride * low - KERNEL, stride * high + KERNEL
    return max(pixel - low, high - pixel)


HALO = -(-receptive_field() // STRIDE) * STRIDE  # rounded up, to keep windows aligned
