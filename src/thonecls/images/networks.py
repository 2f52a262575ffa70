"""Small networks for images and tables: a logit of the positive class for each of them.

The two of seven layers are vPU's, for images of 32×32 and of 96×96; neither normalises nor drops.
Each network is a chain of stages, one to a layer, that can be run in part.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from thonecls.errors import ConfigError, SceneError
from thonecls.method.taylor import at_least_float32

TABLE_WIDTHS = (300, 300, 300)  # our choice; the paper has no tables


class StagedNet(nn.Module):
    """A chain of stages, the last of which gives one or two outputs.

    The logit is the only output, or the second less the first: then its sigmoid is what a softmax
    gives for the second, so that losses need not know which head there is.

    >>> net = cifar_net((3, 32, 32))
    >>> images = torch.zeros(5, 3, 32, 32)
    >>> features = net.features(images, 4)
    >>> features.shape, net.logits(features, 4).shape
    (torch.Size([5, 10, 14, 14]), torch.Size([5]))
    """

    def __init__(self, *stages: nn.Module) -> None:
        super().__init__()
        self.stages = nn.Sequential(*stages)

    def forward(self, inputs: Tensor) -> Tensor:
        """inputs: (n, ...) as the network was made for -> logits (n,)."""
        return self.logits(inputs, 0)

    def features(self, inputs: Tensor, stages: int) -> Tensor:
        """What the first so many stages make of the inputs; with 0 the inputs themselves."""
        made: Tensor = self.stages[:stages](inputs)
        return made

    def logits(self, features: Tensor, stages: int) -> Tensor:
        """Logits (n,) from features after so many stages, by the stages that remain.

        The last of them is in float32 also inside autocast.
        """
        outputs = at_least_float32(self.stages[stages:-1](features))
        if stages < len(self.stages):
            with torch.autocast(outputs.device.type, enabled=False):
                outputs = self.stages[-1](outputs)
        return outputs[:, -1] - outputs[:, 0] if outputs.shape[1] > 1 else outputs[:, 0]

    def readout(self, features: Tensor) -> Tensor:
        """Logits (n,) from what the last stage reads."""
        return self.logits(features, len(self.stages) - 1)


def cifar_net(shape: tuple[int, ...], *, outputs: int = 1) -> StagedNet:
    """The network for CIFAR-10: four convolutions without padding, three dense layers.

    shape: C, H, W of an image. 3×32×32 gives 3,070,284 parameters with two outputs, as published.
    Images of another size, such as 1×28×28, change the first convolution's channels and the
    number of features after the last (10×12×12 instead of 10×14×14); all else stays.
    """
    return _with_head(
        shape,
        [
            nn.Sequential(nn.Conv2d(shape[0], 96, 3), nn.ReLU()),
            nn.Sequential(nn.Conv2d(96, 96, 3, stride=2), nn.ReLU()),
            nn.Sequential(nn.Conv2d(96, 192, 1), nn.ReLU()),
            nn.Sequential(nn.Conv2d(192, 10, 1), nn.ReLU()),
        ],
        (1000, 1000, outputs),
    )


def stl_net(shape: tuple[int, ...], *, outputs: int = 1) -> StagedNet:
    """The network for STL-10: four convolutions with pooling, three dense layers.

    shape: C, H, W of an image. 3×96×96 gives 271,960 parameters with two outputs, as published.
    """
    return _with_head(
        shape,
        [
            nn.Sequential(nn.Conv2d(shape[0], 6, 3), nn.ReLU(), nn.MaxPool2d(2)),
            nn.Sequential(nn.Conv2d(6, 6, 3), nn.ReLU()),
            nn.Sequential(nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2)),
            nn.Sequential(nn.Conv2d(16, 32, 5), nn.ReLU(), nn.MaxPool2d(2)),
        ],
        (120, 84, outputs),
    )


def table_net(shape: tuple[int, ...], *, outputs: int = 1) -> StagedNet:
    """A multi-layer perceptron for the rows of a table; images it flattens.

    shape: (columns,), or that of an image.
    """
    return _with_head(shape, [], (*TABLE_WIDTHS, outputs))


# By name: each takes the shape of an input and the number of outputs.
NETWORKS: dict[str, Callable[..., StagedNet]] = {
    "cifar": cifar_net,
    "stl": stl_net,
    "table": table_net,
}


def scale(images: NDArray[np.uint8] | Tensor) -> Tensor:
    """Bytes 0 to 255 as float32 from -1 to 1, in memory and on the device of a tensor given.

    >>> scale(np.array([0, 255], dtype=np.uint8))
    tensor([-1.,  1.])
    """
    if images.dtype not in (np.uint8, torch.uint8):
        raise SceneError(f"images must be of uint8 to be scaled. Got {images.dtype} instead")
    if isinstance(images, Tensor):
        values = images.to(torch.float32)
    else:
        values = torch.from_numpy(np.array(images, dtype=np.float32, order="C"))
    return values.div_(127.5).sub_(1)


def _with_head(
    shape: tuple[int, ...], stages: list[nn.Module], widths: tuple[int, ...]
) -> StagedNet:
    """The stages and dense layers of these widths, the first as wide as the stages' result."""
    if widths[-1] not in (1, 2):
        raise ConfigError(f"a network has 1 or 2 outputs. Got {widths[-1]} instead")
    try:
        with torch.no_grad():
            features = nn.Sequential(*stages)(torch.zeros(1, *shape)).numel()
    except RuntimeError as e:
        size = "×".join(map(str, shape))
        raise ConfigError(f"inputs of {size} do not suit this network ({e}): take another") from e
    first, *dense = (nn.Linear(before, after) for before, after in pairwise([features, *widths]))
    head = [nn.Sequential(nn.Flatten(), first)]
    for layer in dense:
        head[-1].append(nn.ReLU())
        head.append(nn.Sequential(layer))
    net = StagedNet(*stages, *head)
    # Convolutions on a CPU are faster so; the stubs of `to` do not know this argument.
    net.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    return net
