"""The image datasets by name, with all that is known of them before a file is read."""

from __future__ import annotations

from dataclasses import dataclass

from thonecls.errors import ConfigError


@dataclass(frozen=True)
class ImageSpec:
    """The facts of an image dataset, against which its files are checked.

    shape: channels, rows and columns; classes: their names, number 0 first; train, test: how many
    labelled images there are of each class; unlabeled: how many more without a label;
    where: how to get the files, to be read after a colon.
    What a PU split takes unless told otherwise: positives, the classes that together are the
    positive one; labelled and drawn, how many labelled positives and unlabeled images.
    network: the entry of `thonecls.images.networks.NETWORKS` that suits the images;
    rate: of learning, where the network asks for another than a method's own; order: of the Taylor
    expansion; mix, vpu_rate: the weight of MixUp and the learning rate in vPU; as published.
    """

    name: str
    title: str
    shape: tuple[int, int, int]
    classes: tuple[str, ...]
    train: tuple[int, ...]
    test: tuple[int, ...]
    where: str
    positives: frozenset[int]
    drawn: int
    labelled: int = 900
    unlabeled: int = 0
    network: str = "cifar"
    rate: float | None = None
    order: int = 1
    mix: float = 0.3
    vpu_rate: float = 3e-4


def image_spec(name: str) -> ImageSpec:
    """The facts of the image dataset of this name."""
    if name not in IMAGES:
        raise ConfigError(f"the image dataset must be one of {', '.join(IMAGES)}. Got {name!r}")
    return IMAGES[name]


_CIFAR10 = ImageSpec(
    name="cifar10",
    title="CIFAR-10, colour photographs of 32×32",
    shape=(3, 32, 32),
    classes=(
        *("airplane", "automobile", "bird", "cat", "deer"),
        *("dog", "frog", "horse", "ship", "truck"),
    ),
    train=(5000,) * 10,
    test=(1000,) * 10,
    where="get cifar-10-binary.tar.gz (the binary version) from "
    "https://www.cs.toronto.edu/~kriz/cifar.html and put it there, packed or not",
    positives=frozenset({0, 1, 8, 9}),
    drawn=45_000,
    mix=0.03,
    vpu_rate=3e-5,
)

_STL10 = ImageSpec(
    name="stl10",
    title="STL-10, colour photographs of 96×96",
    shape=(3, 96, 96),
    classes=(
        *("airplane", "bird", "car", "cat", "deer"),
        *("dog", "horse", "monkey", "ship", "truck"),
    ),
    train=(500,) * 10,
    test=(800,) * 10,
    unlabeled=100_000,
    where="get stl10_binary.tar.gz from https://cs.stanford.edu/~acoates/stl10 and unpack it there",
    # A cat among vehicles: odd, but these are the classes of the published experiments.
    positives=frozenset({0, 2, 3, 8, 9}),
    drawn=99_000,
    network="stl",
    order=3,
    vpu_rate=1e-4,
)

_MNIST = ImageSpec(
    name="mnist",
    title="MNIST, handwritten digits of 28×28",
    shape=(1, 28, 28),
    classes=tuple(str(digit) for digit in range(10)),
    train=(5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949),
    test=(980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009),
    where="get its four idx files from https://storage.googleapis.com/cvdf-datasets/mnist/ "
    "(such as train-images-idx3-ubyte.gz) and put them in a folder mnist there, packed or not",
    positives=frozenset({0, 2, 4, 6, 8}),
    drawn=54_000,
    network="table",
    rate=3e-4,
)

_FASHION_MNIST = ImageSpec(
    name="fashion-mnist",
    title="Fashion-MNIST, pieces of clothing of 28×28",
    shape=(1, 28, 28),
    classes=(
        *("T-shirt/top", "Trouser", "Pullover", "Dress", "Coat"),
        *("Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot"),
    ),
    train=(6000,) * 10,
    test=(1000,) * 10,
    where="get its four idx files from https://github.com/zalandoresearch/fashion-mnist "
    "(such as train-images-idx3-ubyte.gz) and put them in a folder fashion-mnist there, packed "
    "or not",
    positives=frozenset({1, 4, 7}),
    drawn=54_000,
    network="table",
    rate=3e-4,
)

IMAGES: dict[str, ImageSpec] = {
    spec.name: spec for spec in (_CIFAR10, _STL10, _MNIST, _FASHION_MNIST)
}
