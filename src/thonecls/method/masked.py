"""Norm and pools that leave pixels without data out, with gradients written by hand."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd import Function
from torch.nn.functional import (
    adaptive_max_pool2d,
    group_norm,
)

from thonecls.method.taylor import at_least_float32


class SceneNorm(nn.GroupNorm):
    """Group norm whose statistics span all windows of a scene and leave nodata out."""

    def forward(self, features: Tensor, valid: Tensor | None = None) -> Tensor:
        """features: (N, C, H, W); valid: (N, 1, H, W) bool, or None where all pixels are."""
        if valid is None and len(features) == 1:
            return group_norm(features, self.num_groups, self.weight, self.bias, self.eps)
        if valid is not None:
            inputs = features, valid, self.weight, self.bias, self
            normed: Tensor = _MaskedNorm.apply(*inputs)  # type: ignore[no-untyped-call]
            return normed
        mean, variance = self.statistics(features, valid)
        scale, shift = self.as_affine(mean, variance)
        return features * scale[:, None, None] + shift[:, None, None]

    def statistics(self, features: Tensor, valid: Tensor | None) -> tuple[Tensor, Tensor]:
        """Mean and variance of each group: (groups,) each."""
        if valid is None:
            grouped = at_least_float32(features).unflatten(1, (self.num_groups, -1))
            variance, mean = torch.var_mean(grouped, (0, 2, 3, 4), correction=0)
            return mean, variance
        mean, variance, _ = self.moments(features, valid)
        return mean, variance

    def moments(self, features: Tensor, valid: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The same over the valid pixels, and the features less their means: (N, C, H, W)."""
        count = valid.sum()
        mean = self.by_group(sum_over(features, valid) / count)
        centred = features - self.by_channel(mean)[:, None, None]
        return mean, self.by_group(sum_over(centred.square(), valid) / count), centred

    def by_group(self, values: Tensor) -> Tensor:
        """The mean over the channels of each group: (C,) -> (groups,)."""
        return values.view(self.num_groups, -1).mean(1)

    def by_channel(self, values: Tensor) -> Tensor:
        """The value of each channel's group: (groups,) -> (C,)."""
        return values.repeat_interleave(self.num_channels // self.num_groups)

    def as_affine(self, mean: Tensor, variance: Tensor) -> tuple[Tensor, Tensor]:
        """The norm with these statistics as a scale and a shift of each channel: (C,) each."""
        scale = self.weight / self.by_channel(torch.sqrt(variance + self.eps))
        return scale, self.bias - self.by_channel(mean) * scale


class _MaskedNorm(Function):
    """The norm over valid pixels with its gradient in closed form: few passes over the map."""

    @staticmethod
    @torch.amp.custom_fwd(device_type="cuda", cast_inputs=torch.float32)  # type: ignore[untyped-decorator]
    @torch.amp.custom_fwd(device_type="cpu", cast_inputs=torch.float32)  # type: ignore[untyped-decorator]
    def forward(
        ctx: Any, features: Tensor, valid: Tensor, weight: Tensor, bias: Tensor, norm: SceneNorm
    ) -> Tensor:
        _, variance, centred = norm.moments(features, valid)
        inverse = norm.by_channel(torch.rsqrt(variance + norm.eps))
        ctx.norm = norm
        ctx.save_for_backward(centred, valid, weight, inverse)
        return torch.addcmul(bias[:, None, None], centred, (weight * inverse)[:, None, None])

    @staticmethod
    @torch.amp.custom_bwd(device_type="cuda")  # type: ignore[untyped-decorator]
    @torch.amp.custom_bwd(device_type="cpu")  # type: ignore[untyped-decorator]
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        centred, valid, weight, inverse = ctx.saved_tensors
        of_bias = gradient.sum((0, 2, 3))
        of_weight = (gradient * centred).sum((0, 2, 3)) * inverse
        # All pixels depend on the mean and on the variance; these depend on the valid ones.
        through_mean, through_deviation = (
            ctx.norm.by_channel(ctx.norm.by_group(weight * part)) * inverse / -valid.sum()
            for part in (of_bias, of_weight * inverse)
        )
        of_features = torch.addcmul(
            through_mean[:, None, None], centred, through_deviation[:, None, None]
        )
        of_features *= valid
        of_features.addcmul_(gradient, (weight * inverse)[:, None, None])
        return of_features, None, of_weight, of_bias, None


def sum_over(features: Tensor, valid: Tensor) -> Tensor:
    """The sum of each channel over the valid pixels, in one pass and without a copy: (C,)."""
    return features.transpose(0, 1).flatten(1) @ valid.flatten().to(features.dtype)


class MaskedPools(Function):
    """Mean and maximum of each channel over valid pixels, with a gradient made in one pass."""

    @staticmethod
    @torch.amp.custom_fwd(device_type="cuda", cast_inputs=torch.float32)  # type: ignore[untyped-decorator]
    @torch.amp.custom_fwd(device_type="cpu", cast_inputs=torch.float32)  # type: ignore[untyped-decorator]
    def forward(ctx: Any, features: Tensor, valid: Tensor) -> tuple[Tensor, Tensor]:
        mean = sum_over(features, valid) / valid.sum()
        # Added, as masked_fill takes ten times as long where channels come last.
        least = torch.zeros_like(valid, dtype=features.dtype).masked_fill_(~valid, -torch.inf)
        pooled, places = adaptive_max_pool2d(features + least, 1, return_indices=True)
        largest, windows = pooled.flatten(1).max(0)
        places = places.flatten(1).gather(0, windows[None])[0]
        ctx.save_for_backward(features, valid, windows, places)
        return mean, largest

    @staticmethod
    @torch.amp.custom_bwd(device_type="cuda")  # type: ignore[untyped-decorator]
    @torch.amp.custom_bwd(device_type="cpu")  # type: ignore[untyped-decorator]
    def backward(ctx: Any, of_mean: Tensor, of_largest: Tensor) -> tuple[Tensor, None]:
        features, valid, windows, places = ctx.saved_tensors
        of_features = torch.empty_like(features)
        torch.mul(valid, (of_mean / valid.sum())[:, None, None], out=of_features)
        # One place of each channel, so that no two meet: same seed, same bits.
        columns = features.shape[3]
        channels = torch.arange(len(places), device=places.device)
        of_features[windows, channels, places // columns, places % columns] += of_largest
        return of_features, None
