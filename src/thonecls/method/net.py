"""FreeOCNet: a fully convolutional network that labels every pixel of a scene at once.

An encoder of four attention blocks at strides 1, 2, 4, 8 and a feature-pyramid decoder. After
the laterals the decoder is linear, so `logits_at` evaluates it at a few pixels for a small part
of the cost of `forward`, with the same result.

A scene may be given whole or as several windows of one size: norms and channel attention take
their statistics over all of them together, as if they were one scene. Pixels that are not valid
are left out of these statistics.
"""

from __future__ import annotations

import itertools

import torch
from torch import Tensor, nn
from torch.nn.functional import (
    adaptive_max_pool2d,
    conv2d,
    fold,
    interpolate,
    linear,
    max_pool2d,
    relu,
)

from thonecls.method.masked import MaskedPools, SceneNorm
from thonecls.method.taylor import at_least_float32

WIDTHS = (64, 128, 192, 256)
DECODER_WIDTH = 128
GROUPS = 16
REDUCTION = 16
MANY = 1 / 16  # of all pixels: beyond, the decoder is faster everywhere than at each of them


class ChannelGate(nn.Module):
    """Channel attention: sigmoid(MLP(mean over pixels) + MLP(max over pixels))."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.width = width
        hidden = max(1, width // REDUCTION)
        self.mlp = nn.Sequential(nn.Linear(width, hidden), nn.ReLU(), nn.Linear(hidden, width))

    def forward(self, features: Tensor, valid: Tensor | None = None) -> Tensor:
        return features * self.gate(features, valid)[:, None, None]

    def gate(self, features: Tensor, valid: Tensor | None) -> Tensor:
        """The factor of each channel: (C,), from 0 to 1."""
        if valid is None:
            mean = features.mean((0, 2, 3))
            # Pooling keeps the place of the maximum; amax would look for it again in its gradient.
            largest = adaptive_max_pool2d(features, 1).amax((0, 2, 3))
        else:
            mean, largest = MaskedPools.apply(features, valid)  # type: ignore[no-untyped-call]
        gate: Tensor = torch.sigmoid(self.mlp(mean) + self.mlp(largest))
        return gate


class SpatialGate(nn.Module):
    """Spatial attention: sigmoid of a 7×7 convolution of [channel max, channel mean]."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(2, 1, 7, padding=3, bias=False)

    def forward(self, features: Tensor) -> Tensor:
        pooled = torch.cat([features.amax(1, keepdim=True), features.mean(1, keepdim=True)], 1)
        return features * torch.sigmoid(self.conv(pooled))


class Block(nn.Module):
    """Both attentions, then convolution, norm and ReLU."""

    def __init__(self, width: int, groups: int) -> None:
        super().__init__()
        self.channel = ChannelGate(width)
        self.spatial = SpatialGate()
        self.conv = nn.Conv2d(width, width, 3, padding=1)
        self.norm = SceneNorm(groups, width)

    def forward(self, features: Tensor, valid: Tensor | None = None) -> Tensor:
        features = self.conv(self.spatial(self.channel(features, valid)))
        return relu(self.norm(features, valid), inplace=True)


class FreeOCNet(nn.Module):
    """Logit of the target class at every pixel of a z-scored cube.

    bands: C of the input; width: multiplier of all channel counts and of the norm's groups.
    Takes any H×W without padding: strided convolutions round up, and the upsampled maps are
    cropped to the lateral's size.

    >>> net = FreeOCNet(bands=4, width=0.25)
    >>> net(torch.zeros(1, 4, 5, 7)).shape
    torch.Size([1, 5, 7])
    """

    def __init__(self, bands: int, *, width: float = 1.0) -> None:
        super().__init__()
        self.settings = {"bands": bands, "width": width}
        groups = max(1, round(GROUPS * width))
        # Channel counts stay multiples of the groups, whatever the multiplier.
        widths = [max(1, round(w * width / groups)) * groups for w in WIDTHS]
        decoder = max(1, round(DECODER_WIDTH * width))
        self.stem = nn.Conv2d(bands, widths[0], 3, padding=1)
        self.norm = SceneNorm(groups, widths[0])
        self.blocks = nn.ModuleList(Block(w, groups) for w in widths)
        self.downs = nn.ModuleList(
            nn.Conv2d(a, b, 3, stride=2, padding=1) for a, b in itertools.pairwise(widths)
        )
        self.laterals = nn.ModuleList(nn.Conv2d(w, decoder, 1) for w in widths)
        self.smooths = nn.ModuleList(nn.Conv2d(decoder, decoder, 3, padding=1) for _ in widths)
        self.head = nn.Conv2d(decoder, 1, 1)

    def forward(self, cube: Tensor, valid: Tensor | None = None) -> Tensor:
        """cube: (N, C, H, W), valid: (N, 1, H, W) bool or None -> logits (N, H, W)."""
        top = None
        for level, features in reversed(list(enumerate(self.encode(cube, valid)))):
            merged = self.laterals[level](features)
            if top is not None:
                rows, columns = features.shape[2:]
                merged = merged + interpolate(top, scale_factor=2)[:, :, :rows, :columns]
            top = self.smooths[level](merged)
        logits: Tensor = self.head(top)
        return logits[:, 0]

    def logits_at(self, cube: Tensor, pixels: Tensor, valid: Tensor | None = None) -> Tensor:
        """The same logits at some pixels only.

        cube: (N, C, H, W); pixels: (n,) flat indices into (N, H, W) -> (n,) logits.
        """
        readout, bias = self.head.weight[:, :, 0, 0], self.head.bias
        assert bias is not None
        maps = self._encode_in_full(cube, valid)
        with torch.autocast(cube.device.type, enabled=False):
            if len(pixels) > MANY * cube[:, 0].numel():
                logits = self._decode(maps, 0, readout).flatten().index_select(0, pixels)
            else:
                logits = self._decode_at(maps, 0, pixels, readout)[:, 0]
            return logits + bias

    def features_at(self, cube: Tensor, pixels: Tensor, valid: Tensor | None = None) -> Tensor:
        """What the head reads at some pixels: (n, width); `readout` makes logits of it."""
        maps = self._encode_in_full(cube, valid)
        with torch.autocast(cube.device.type, enabled=False):
            if len(pixels) > MANY * cube[:, 0].numel():
                everywhere = self._decode(maps, 0, None).movedim(1, 3).flatten(0, 2)
                return everywhere.index_select(0, pixels)
            return self._decode_at(maps, 0, pixels, None)

    def readout(self, features: Tensor) -> Tensor:
        """Logits (n,) of features (n, width), in float32 also inside autocast."""
        with torch.autocast(features.device.type, enabled=False):
            return linear(features, self.head.weight[:, :, 0, 0], self.head.bias)[:, 0]

    def _encode_in_full(self, cube: Tensor, valid: Tensor | None) -> list[Tensor]:
        """As `encode`, in float32 also inside autocast: products of weights are not cast there."""
        return [at_least_float32(features) for features in self.encode(cube, valid)]

    def encode(self, cube: Tensor, valid: Tensor | None = None) -> list[Tensor]:
        """cube: (N, C, H, W) -> four (N, width, rows, columns) maps at strides 1, 2, 4, 8."""
        features = relu(self.norm(self.stem(cube), valid), inplace=True)
        features = self.blocks[0](features, valid)
        maps = [features]
        for down, block in zip(self.downs, self.blocks[1:], strict=True):
            if valid is not None:
                # Any valid pixel will do: no level may be without one.
                valid = max_pool2d(valid.float(), 2, ceil_mode=True) > 0
            features = block(relu(down(features), inplace=True), valid)
            maps.append(features)
        return maps

    def _decode(self, maps: list[Tensor], level: int, readout: Tensor | None) -> Tensor:
        """The decoder's map of one level as far as it is read out: (N, m or width, rows, columns).

        As `_decode_at`, but everywhere: nothing has to be looked up.
        """
        smooth = self.smooths[level]
        assert isinstance(smooth, nn.Conv2d)
        kernel, bias = smooth.weight, smooth.bias
        assert bias is not None
        if readout is not None:
            kernel, bias = torch.tensordot(readout, kernel, 1), readout @ bias
        count, width, rows, columns = kernel.shape
        if count * rows * columns >= width:
            return conv2d(self._merge(maps, level, None), kernel, bias, padding=1)
        # What each pixel gives to each neighbour; `fold` adds up what each is given.
        taps = self._merge(maps, level, kernel.flip(2, 3).movedim(1, 3).flatten(0, 2))
        return (
            fold(taps.flatten(2), taps.shape[2:], (rows, columns), padding=1) + bias[:, None, None]
        )

    def _merge(self, maps: list[Tensor], level: int, readout: Tensor | None) -> Tensor:
        """Lateral plus the level above, as far as read out: (N, m or width, rows, columns)."""
        lateral = self.laterals[level]
        assert isinstance(lateral, nn.Conv2d)
        weight, bias = lateral.weight, lateral.bias
        assert bias is not None
        if readout is not None:
            weight, bias = torch.tensordot(readout, weight, 1), readout @ bias
        merged = conv2d(maps[level], weight, bias)
        if level + 1 < len(maps):
            above = interpolate(self._decode(maps, level + 1, readout), scale_factor=2)
            merged = merged + above[:, :, : merged.shape[2], : merged.shape[3]]
        return merged

    def _decode_at(
        self, maps: list[Tensor], level: int, pixels: Tensor, readout: Tensor | None
    ) -> Tensor:
        """The decoder's map of one level at some of its pixels, as far as it is read out.

        pixels: (n,) flat indices; readout: (m, width) or None for all of it -> (n, m or width).
        All is linear, so few readouts go through the convolution before they meet its pixels:
        each pixel then holds a few numbers for each neighbour, not the neighbour its features.
        """
        smooth = self.smooths[level]
        assert isinstance(smooth, nn.Conv2d)
        kernel, bias = smooth.weight.flatten(2).transpose(1, 2), smooth.bias
        assert bias is not None
        if readout is not None:
            kernel, bias = torch.tensordot(readout, kernel, 1), readout @ bias
        count, offsets, width = kernel.shape
        places, patches = _patches(pixels, *maps[level].shape[2:])
        if count * offsets < width:
            merged = self._merge_at(maps, level, places, kernel.transpose(0, 1).flatten(0, 1))
            patches = patches * offsets + torch.arange(offsets, device=pixels.device)
            return _gather(merged, patches, offsets, count).sum(1) + bias
        merged = self._merge_at(maps, level, places, None)
        return linear(_gather(merged, patches, 1, width).flatten(1), kernel.flatten(1), bias)

    def _merge_at(
        self, maps: list[Tensor], level: int, places: Tensor, readout: Tensor | None
    ) -> Tensor:
        """Lateral plus the level above at `places`, as far as read out: (u, m or width)."""
        lateral = self.laterals[level]
        assert isinstance(lateral, nn.Conv2d)
        weight, bias = lateral.weight[:, :, 0, 0], lateral.bias
        assert bias is not None
        if readout is not None:
            weight, bias = readout @ weight, readout @ bias
        _, channels, rows, columns = maps[level].shape
        flat = maps[level].transpose(0, 1).reshape(channels, -1)
        merged = linear(flat.index_select(1, places).T, weight, bias)
        if level + 1 < len(maps):
            parents, parent = _parents(places, (rows, columns), maps[level + 1].shape[2:])
            above = self._decode_at(maps, level + 1, parents, readout)
            merged = merged + above.index_select(0, parent)
        return merged


def _gather(merged: Tensor, patches: Tensor, offsets: int, width: int) -> Tensor:
    """Each pixel's neighbours: merged (u, offsets * width), patches (n, 9) -> (n, 9, width).

    Rows of `patches` count from `offsets`; what lies below is outside the scene, and zero.
    """
    rows = merged.view(-1, width)
    padded = torch.cat([rows.new_zeros(offsets, width), rows])
    # index_select, whose gradient is summed in a fixed order: same seed, same bits.
    return padded.index_select(0, patches.flatten()).view(*patches.shape, width)


def _patches(pixels: Tensor, rows: int, columns: int) -> tuple[Tensor, Tensor]:
    """The 3×3 neighbourhoods of `pixels`: the places they cover, and rows into them.

    pixels: (n,) flat indices into windows of rows × columns. Returns (u,) distinct flat indices
    and (n, 9) positions in them counted from 1, where 0 stands for a neighbour outside.
    """
    step = torch.arange(-1, 2, device=pixels.device)
    down, across = step.repeat_interleave(3), step.repeat(3)
    row = (pixels // columns % rows)[:, None] + down
    column = (pixels % columns)[:, None] + across
    inside = (row >= 0) & (row < rows) & (column >= 0) & (column < columns)
    flat = torch.where(inside, pixels[:, None] + down * columns + across, -1).flatten()
    # The leading -1 makes "outside" the first distinct value, wherever the pixels lie.
    places, inverse = torch.cat([flat.new_full((1,), -1), flat]).unique(return_inverse=True)
    return places[1:], inverse[1:].view(-1, 9)


def _parents(places: Tensor, size: tuple[int, int], coarse: torch.Size) -> tuple[Tensor, Tensor]:
    """The pixels of the next coarser level that lie above `places`, and each place's own."""
    rows, columns = size
    window, row = places // (rows * columns), places // columns % rows
    above = (window * coarse[0] + row // 2) * coarse[1] + places % columns // 2
    parents, parent = above.unique(return_inverse=True)
    return parents, parent
