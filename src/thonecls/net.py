"""FreeOCNet: a fully convolutional network that labels every pixel of a scene at once.

An encoder of four attention blocks at strides 1, 2, 4, 8 and a feature-pyramid decoder. After
the laterals the decoder is linear, so `logits_at` evaluates it at a few pixels for a small part
of the cost of `forward`, with the same result.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import interpolate, linear

WIDTHS = (64, 128, 192, 256)
DECODER_WIDTH = 128
GROUPS = 16
REDUCTION = 16


class ChannelGate(nn.Module):
    """Channel attention: sigmoid(MLP(mean over pixels) + MLP(max over pixels))."""

    def __init__(self, width: int) -> None:
        super().__init__()
        hidden = max(1, width // REDUCTION)
        self.mlp = nn.Sequential(nn.Linear(width, hidden), nn.ReLU(), nn.Linear(hidden, width))

    def forward(self, features: Tensor) -> Tensor:
        pooled = self.mlp(features.mean((2, 3))) + self.mlp(features.amax((2, 3)))
        return features * torch.sigmoid(pooled)[:, :, None, None]


class SpatialGate(nn.Module):
    """Spatial attention: sigmoid of a 7×7 convolution of [channel max, channel mean]."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(2, 1, 7, padding=3, bias=False)

    def forward(self, features: Tensor) -> Tensor:
        pooled = torch.cat([features.amax(1, keepdim=True), features.mean(1, keepdim=True)], 1)
        return features * torch.sigmoid(self.conv(pooled))


def _normed(inputs: int, outputs: int, groups: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, 3, padding=1), nn.GroupNorm(groups, outputs), nn.ReLU()
    )


class FreeOCNet(nn.Module):
    """Logit of the target class at every pixel of a z-scored cube.

    bands: C of the input; width: multiplier of all channel counts and of the norm's groups.
    Takes any H×W without padding: strided convolutions round up, and the upsampled maps are
    cropped to the lateral's size.

    >>> net = FreeOCNet(bands=4, width=0.25)
    >>> net(torch.zeros(4, 5, 7)).shape
    torch.Size([5, 7])
    """

    def __init__(self, bands: int, *, width: float = 1.0) -> None:
        super().__init__()
        self.settings = {"bands": bands, "width": width}
        groups = max(1, round(GROUPS * width))
        # Channel counts stay multiples of the groups, whatever the multiplier.
        one, *more = (max(1, round(w * width / groups)) * groups for w in WIDTHS)
        decoder = max(1, round(DECODER_WIDTH * width))
        widths = [one, *more]
        self.stem = _normed(bands, one, groups)
        self.blocks = nn.ModuleList(
            nn.Sequential(ChannelGate(w), SpatialGate(), _normed(w, w, groups)) for w in widths
        )
        self.downs = nn.ModuleList(
            nn.Sequential(nn.Conv2d(a, b, 3, stride=2, padding=1), nn.ReLU())
            for a, b in zip(widths, more, strict=False)
        )
        self.laterals = nn.ModuleList(nn.Conv2d(w, decoder, 1) for w in widths)
        self.smooths = nn.ModuleList(nn.Conv2d(decoder, decoder, 3, padding=1) for _ in widths)
        self.head = nn.Conv2d(decoder, 1, 1)

    def forward(self, cube: Tensor) -> Tensor:
        """cube: (C, H, W) float32 -> logits (H, W)."""
        top = None
        for level in reversed(list(enumerate(self.encode(cube)))):
            top = self._decode_level(*level, top)
        logits: Tensor = self.head(top)
        return logits[0, 0]

    def logits_at(self, cube: Tensor, pixels: Tensor) -> Tensor:
        """The same logits at some pixels only.

        cube: (C, H, W); pixels: (n,) flat row-major indices -> (n,) logits.
        """
        rows = self._decode_at(self.encode(cube), 0, pixels)
        return linear(rows, self.head.weight[:, :, 0, 0], self.head.bias)[:, 0]

    def encode(self, cube: Tensor) -> list[Tensor]:
        """cube: (C, H, W) -> four (1, width, rows, columns) maps at strides 1, 2, 4, 8."""
        features = self.blocks[0](self.stem(cube[None]))
        maps = [features]
        for down, block in zip(self.downs, self.blocks[1:], strict=True):
            features = block(down(features))
            maps.append(features)
        return maps

    def _decode_level(self, level: int, features: Tensor, above: Tensor | None) -> Tensor:
        """One top-down step over the whole map: smooth(lateral + upsampled map from above)."""
        merged = self.laterals[level](features)
        if above is not None:
            rows, columns = features.shape[2:]
            merged = merged + interpolate(above, scale_factor=2)[:, :, :rows, :columns]
        smoothed: Tensor = self.smooths[level](merged)
        return smoothed

    def _decode_at(self, maps: list[Tensor], level: int, pixels: Tensor) -> Tensor:
        """`_decode_level` at some pixels of one level: (n,) flat indices -> (n, decoder) rows."""
        lateral, smooth = self.laterals[level], self.smooths[level]
        assert isinstance(lateral, nn.Conv2d)
        assert isinstance(smooth, nn.Conv2d)
        _, channels, rows, columns = maps[level].shape
        places, patches = _patches(pixels, rows, columns)
        flat = maps[level].permute(0, 2, 3, 1).reshape(rows * columns, channels)
        merged = linear(flat.index_select(0, places), lateral.weight[:, :, 0, 0], lateral.bias)
        if level + 1 < len(maps):
            coarse = maps[level + 1].shape[3]
            parents = (places // columns // 2) * coarse + places % columns // 2
            wanted, parent = parents.unique(return_inverse=True)
            above = self._decode_at(maps, level + 1, wanted)
            merged = merged + above.index_select(0, parent)
        padded = torch.cat([merged.new_zeros(1, merged.shape[1]), merged])  # row 0: outside
        # index_select, whose gradient is summed in a fixed order: same seed, same bits.
        gathered = padded.index_select(0, patches.flatten()).view(len(pixels), -1)
        kernel = smooth.weight.permute(0, 2, 3, 1).reshape(smooth.out_channels, -1)
        return linear(gathered, kernel, smooth.bias)


def _patches(pixels: Tensor, rows: int, columns: int) -> tuple[Tensor, Tensor]:
    """The 3×3 neighbourhoods of `pixels`: the places they cover, and rows into them.

    Returns (u,) distinct flat indices inside the map and (n, 9) positions in them counted
    from 1, where 0 stands for a neighbour outside the map.
    """
    step = torch.arange(-1, 2, device=pixels.device)
    row = (pixels // columns)[:, None, None] + step[:, None]
    column = (pixels % columns)[:, None, None] + step
    inside = (row >= 0) & (row < rows) & (column >= 0) & (column < columns)
    flat = torch.where(inside, row * columns + column, -1).flatten()
    # The leading -1 makes "outside" the first distinct value, wherever the pixels lie.
    places, inverse = torch.cat([flat.new_full((1,), -1), flat]).unique(return_inverse=True)
    return places[1:], inverse[1:].view(-1, 9)
