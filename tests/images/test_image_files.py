"""Image datasets from tiny files of the same forms as the real ones, and their splits."""

from __future__ import annotations

import gzip
import io
import struct
import tarfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from thonecls.errors import ConfigError, FileError, LabelError
from thonecls.images import (
    IMAGES,
    Images,
    ImageSpec,
    image_split,
    is_present,
    load_images,
)

Bytes = NDArray[np.uint8]

FULL = dict(IMAGES)
BATCHES = [*(f"data_batch_{number}" for number in range(1, 6)), "test_batch"]
STL_CLASSES = "airplane bird car cat deer dog horse monkey ship truck"


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """All datasets shrink, to images that are not square."""
    monkeypatch.delenv("THONECLS_DATA", raising=False)
    sizes: dict[str, dict[str, Any]] = {
        "cifar10": {"shape": (3, 4, 5), "train": (5,) * 10, "test": (1,) * 10},
        "stl10": {"shape": (3, 6, 4), "train": (2,) * 10, "test": (3,) * 10, "unlabeled": 7},
        "mnist": {"shape": (1, 3, 4), "train": (3, 5, *(2,) * 8), "test": (2, *(1,) * 9)},
        "fashion-mnist": {"shape": (1, 3, 4), "train": (2,) * 10, "test": (1,) * 10},
    }
    for name, size in sizes.items():
        monkeypatch.setitem(IMAGES, name, replace(IMAGES[name], **size))


def make_images(spec: ImageSpec, seed: int = 0) -> Images:
    """Images of a dataset's size in random order."""
    rng = np.random.default_rng(seed)

    def some(count: int) -> Bytes:
        return rng.integers(0, 256, (count, *spec.shape), dtype=np.uint8)

    def labels(counts: tuple[int, ...]) -> Bytes:
        return rng.permutation(np.repeat(np.arange(len(counts), dtype=np.uint8), counts))

    return Images(
        name=spec.name,
        train=some(sum(spec.train)),
        train_labels=labels(spec.train),
        test=some(sum(spec.test)),
        test_labels=labels(spec.test),
        unlabeled=some(spec.unlabeled) if spec.unlabeled else None,
        classes=dict(enumerate(spec.classes)),
    )


def batches(images: Images) -> list[tuple[Bytes, Bytes]]:
    train = zip(np.split(images.train, 5), np.split(images.train_labels, 5), strict=True)
    return [*train, (images.test, images.test_labels)]


def binary_batch(pixels: Bytes, labels: Bytes) -> bytes:
    return np.column_stack([labels, pixels.reshape(len(pixels), -1)]).tobytes()


def make_batches(
    images: Images, folder: Path, make: Callable[[Bytes, Bytes], bytes], ending: str = ""
) -> None:
    for name, batch in zip(BATCHES, batches(images), strict=True):
        (folder / f"{name}{ending}").write_bytes(make(*batch))


def make_archive(
    images: Images, path: Path, make: Callable[[Bytes, Bytes], bytes], ending: str = ""
) -> None:
    with tarfile.open(path, "w:gz") as archive:
        for name, batch in reversed(list(zip(BATCHES, batches(images), strict=True))):
            content = make(*batch)
            member = tarfile.TarInfo(f"cifar-10-batches/{name}{ending}")
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))


def make_stl(images: Images, folder: Path) -> None:
    assert images.unlabeled is not None
    for part, pixels in (
        ("train", images.train),
        ("test", images.test),
        ("unlabeled", images.unlabeled),
    ):
        (folder / f"{part}_X.bin").write_bytes(pixels.transpose(0, 1, 3, 2).tobytes())
    (folder / "train_y.bin").write_bytes((images.train_labels + 1).tobytes())
    (folder / "test_y.bin").write_bytes((images.test_labels + 1).tobytes())
    (folder / "class_names.txt").write_text("\n".join(STL_CLASSES.split()) + "\n")


def idx_bytes(array: Bytes) -> bytes:
    sizes = struct.pack(f">{array.ndim}I", *array.shape)
    return bytes([0, 0, 8, array.ndim]) + sizes + array.tobytes()


def make_idx(images: Images, folder: Path, *, test: str = "t10k", dot: str = "-") -> None:
    for part, pixels, labels in (
        ("train", images.train, images.train_labels),
        (test, images.test, images.test_labels),
    ):
        (folder / f"{part}-images{dot}idx3-ubyte").write_bytes(idx_bytes(pixels[:, 0]))
        (folder / f"{part}-labels{dot}idx1-ubyte").write_bytes(idx_bytes(labels))


def make_zipped_idx(images: Images, folder: Path) -> None:
    make_idx(images, folder)
    for path in folder.glob("*ubyte"):
        path.with_name(path.name + ".gz").write_bytes(gzip.compress(path.read_bytes()))
        path.unlink()


def make_npz(images: Images, folder: Path) -> None:
    arrays: dict[str, Any] = {
        "train": images.train,
        "train_labels": images.train_labels,
        "test": images.test,
        "test_labels": images.test_labels,
    }
    if images.unlabeled is not None:
        arrays["unlabeled"] = images.unlabeled
    np.savez_compressed(folder / f"{images.name}.npz", **arrays)


def make_keras_npz(images: Images, folder: Path) -> None:
    """As Keras keeps them: channels last or none, labels in a column."""
    last = (np.moveaxis(part, 1, 3) for part in (images.train, images.test))
    train, test = (part[..., 0] if images.train.shape[1] == 1 else part for part in last)
    np.savez(
        folder / f"{images.name}.npz",
        x_train=train,
        y_train=images.train_labels[:, None].astype(np.int64),
        x_test=test,
        y_test=images.test_labels[:, None].astype(np.int64),
    )


FORMS: dict[str, tuple[str, Callable[[Images, Path], None]]] = {
    "cifar10 binary": ("cifar10", lambda i, to: make_batches(i, to, binary_batch, ".bin")),
    "cifar10 binary archive": (
        "cifar10",
        lambda i, to: make_archive(i, to / "cifar-10-binary.tar.gz", binary_batch, ".bin"),
    ),
    "cifar10 npz": ("cifar10", make_npz),
    "cifar10 of Keras": ("cifar10", make_keras_npz),
    "stl10 binary": ("stl10", make_stl),
    "stl10 npz": ("stl10", make_npz),
    "mnist idx": ("mnist", make_idx),
    "mnist zipped": ("mnist", make_zipped_idx),
    "mnist with dots": ("mnist", lambda i, to: make_idx(i, to, dot=".")),
    "mnist test": ("mnist", lambda i, to: make_idx(i, to, test="test")),
    "mnist of Keras": ("mnist", make_keras_npz),
    "fashion idx": ("fashion-mnist", make_idx),
    "fashion zipped": ("fashion-mnist", make_zipped_idx),
}


def assert_same(found: Images, made: Images) -> None:
    for part in ("train", "train_labels", "test", "test_labels"):
        array = getattr(found, part)
        np.testing.assert_array_equal(array, getattr(made, part))
        assert array.dtype == np.uint8
    assert (found.name, found.classes) == (made.name, made.classes)
    assert (found.unlabeled is None) == (made.unlabeled is None)
    if found.unlabeled is not None and made.unlabeled is not None:
        np.testing.assert_array_equal(found.unlabeled, made.unlabeled)


@pytest.mark.parametrize("form", FORMS)
def test_every_form_is_read_back_exactly(form: str, tmp_path: Path) -> None:
    name, write = FORMS[form]
    folder = tmp_path / "some" / "folder"
    folder.mkdir(parents=True)
    assert not is_present(name, tmp_path)
    write(made := make_images(IMAGES[name]), folder)
    assert is_present(name, tmp_path)
    found = load_images(name, tmp_path)
    assert_same(found, made)
    assert found.shape == IMAGES[name].shape
    assert found.pool is (found.train if name != "stl10" else found.unlabeled)


@pytest.mark.parametrize("form", FORMS)
def test_no_half_of_a_file_is_read(form: str, tmp_path: Path) -> None:
    name, write = FORMS[form]
    write(make_images(IMAGES[name]), tmp_path)
    for path in sorted(tmp_path.iterdir()):
        if path.suffix == ".txt":
            continue
        whole = path.read_bytes()
        for kept in (0, 3, len(whole) * 2 // 3, len(whole) - 1):
            path.write_bytes(whole[:kept])
            with pytest.raises((FileError, LabelError)) as error:
                load_images(name, tmp_path)
            assert path.name in str(error.value) or "images of its classes" in str(error.value)
            assert IMAGES[name].where in str(error.value)
        path.write_bytes(whole)
    assert load_images(name, tmp_path).name == name


class Touch:
    """Unpickled by Python, it makes a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.path,)


def test_stl_lies_column_by_column_and_stays_on_disk(tmp_path: Path) -> None:
    make_stl(make_images(IMAGES["stl10"]), tmp_path)
    path = tmp_path / "unlabeled_X.bin"
    path.write_bytes((np.arange(path.stat().st_size) % 251).astype(np.uint8).tobytes())
    unlabeled = load_images("stl10", tmp_path).unlabeled
    assert isinstance(unlabeled, np.memmap)
    assert unlabeled[0, 0, :, 0].tolist() == [0, 1, 2, 3, 4, 5]
    assert unlabeled[0, 0, 0].tolist() == [0, 6, 12, 18]
    assert unlabeled[0, 1, 0, 0] == 24


@pytest.mark.parametrize("wrong", [0, 11])
def test_stl_labels_count_from_one(wrong: int, tmp_path: Path) -> None:
    make_stl(make_images(IMAGES["stl10"]), tmp_path)
    labels = np.fromfile(tmp_path / "train_y.bin", dtype=np.uint8)
    labels[4] = wrong
    labels.tofile(tmp_path / "train_y.bin")
    with pytest.raises(LabelError, match=rf"train_y\.bin must be 1 to 10\. Got {wrong} instead"):
        load_images("stl10", tmp_path)


def test_stl_needs_the_classes_in_its_order(tmp_path: Path) -> None:
    make_stl(made := make_images(IMAGES["stl10"]), tmp_path)
    (tmp_path / "class_names.txt").write_text(STL_CLASSES.replace("bird car", "car bird"))
    with pytest.raises(LabelError, match=r"class_names\.txt must name the classes airplane bird"):
        load_images("stl10", tmp_path)
    (tmp_path / "class_names.txt").unlink()
    assert_same(load_images("stl10", tmp_path), made)


def test_unknown_labels_are_refused(tmp_path: Path) -> None:
    make_batches(made := make_images(IMAGES["cifar10"]), tmp_path, binary_batch, ".bin")
    pixels, labels = batches(made)[0]
    (tmp_path / "data_batch_1.bin").write_bytes(binary_batch(pixels, labels + 3))
    with pytest.raises(LabelError, match=r"data_batch_1\.bin must be 0 to 9\. Got 1.* again: get"):
        load_images("cifar10", tmp_path)


def test_a_batch_given_twice_is_found_by_its_counts(tmp_path: Path) -> None:
    make_batches(make_images(IMAGES["cifar10"]), tmp_path, binary_batch, ".bin")
    (tmp_path / "data_batch_2.bin").write_bytes((tmp_path / "data_batch_1.bin").read_bytes())
    with pytest.raises(LabelError, match=r"cifar10 has 5, 5, .* classes to train; .* hold .*: get"):
        load_images("cifar10", tmp_path)


def test_images_without_labels_are_refused(tmp_path: Path) -> None:
    make_idx(made := make_images(IMAGES["mnist"]), tmp_path)
    labels = tmp_path / "train-labels-idx1-ubyte"
    labels.write_bytes(idx_bytes(made.train_labels[1:]))
    with pytest.raises(LabelError, match="images-idx3-ubyte has 24 images, but 23 labels"):
        load_images("mnist", tmp_path)
    labels.write_bytes(idx_bytes(made.train[:, 0]))
    with pytest.raises(FileError, match=r"idx file .* 1 axes, .*00000801\. Got 00000803 instead"):
        load_images("mnist", tmp_path)
    labels.write_bytes(idx_bytes(made.train_labels))
    images = tmp_path / "train-images-idx3-ubyte"
    images.write_bytes(idx_bytes(made.train[:, 0].transpose(0, 2, 1)))
    with pytest.raises(FileError, match=r"mnist has images of 1×3×4; .*idx3-ubyte holds 4×3"):
        load_images("mnist", tmp_path)


def test_arrays_must_be_bytes_under_known_names(tmp_path: Path) -> None:
    made = make_images(IMAGES["stl10"])
    path = tmp_path / "stl10.npz"
    arrays: dict[str, Any] = {"x_train": made.train, "y_train": made.train_labels}
    np.savez(path, **arrays)
    with pytest.raises(FileError, match=r"must hold x_train, .*, and unlabeled\. Got x_train, y_t"):
        load_images("stl10", tmp_path)
    arrays |= {"x_test": made.test / 255, "y_test": made.test_labels, "unlabeled": made.unlabeled}
    np.savez(path, **arrays)
    with pytest.raises(FileError, match=r"must hold images of uint8\. Got float64"):
        load_images("stl10", tmp_path)
    np.savez(path, **arrays | {"x_test": made.test, "y_test": made.test_labels / 2})
    with pytest.raises(LabelError, match=r"must be whole numbers\. Got float64"):
        load_images("stl10", tmp_path)
    np.savez(path, **arrays | {"x_test": made.test, "unlabeled": made.train})
    with pytest.raises(FileError, match="has 20 unlabeled images; stl10 has 7"):
        load_images("stl10", tmp_path)
    np.savez(path, **arrays | {"x_test": np.array([Touch(tmp_path / "sprung")], dtype=object)})
    with pytest.raises(FileError, match="no file of arrays without objects"):
        load_images("stl10", tmp_path)
    assert not (tmp_path / "sprung").exists()
    path.write_bytes(np.lib.format.magic(1, 0))
    with pytest.raises(FileError, match="no file of arrays"):
        load_images("stl10", tmp_path)


def test_an_archive_must_hold_all_batches(tmp_path: Path) -> None:
    path = tmp_path / "cifar-10-binary.tar.gz"
    made = make_images(IMAGES["cifar10"])
    make_archive(made, path, binary_batch)
    with pytest.raises(
        FileError, match=r"tar\.gz does not hold data_batch_1\.bin, .*, test_batch\.bin"
    ):
        load_images("cifar10", tmp_path)


def test_missing_files_are_named_with_where_to_get_them(tmp_path: Path) -> None:
    for name in IMAGES:
        with pytest.raises(FileError, match=rf"{name} needs .* cannot be found in .*: get .*http"):
            load_images(name, tmp_path)
    make_stl(make_images(IMAGES["stl10"]), tmp_path)
    (tmp_path / "unlabeled_X.bin").unlink()
    assert not is_present("stl10", tmp_path)
    with pytest.raises(FileError, match=r"stl10 needs unlabeled_X\.bin, which"):
        load_images("stl10", tmp_path)


@pytest.mark.parametrize("folder", ["fashion-mnist", "FashionMNIST", "data/Fashion_MNIST/raw"])
def test_files_of_one_name_belong_to_the_dataset_of_their_folder(
    folder: str, tmp_path: Path
) -> None:
    digits, clothes = (make_images(IMAGES[name]) for name in ("mnist", "fashion-mnist"))
    (tmp_path / folder).mkdir(parents=True)
    make_idx(clothes, tmp_path / folder)
    assert not is_present("mnist", tmp_path)
    make_idx(digits, tmp_path)
    assert_same(load_images("mnist", tmp_path), digits)
    assert_same(load_images("fashion-mnist", tmp_path), clothes)


def test_digits_and_clothes_are_told_apart_by_their_counts(tmp_path: Path) -> None:
    make_idx(make_images(IMAGES["fashion-mnist"]), tmp_path)
    with pytest.raises(LabelError, match=r"of fashion-mnist; keep them in a folder fashion-mnist"):
        load_images("mnist", tmp_path)


def test_unknown_names_are_refused_with_the_known_ones(tmp_path: Path) -> None:
    for ask in (load_images, is_present):
        with pytest.raises(ConfigError, match=r"one of cifar10, stl10, .*Got 'cifar100'"):
            ask("cifar100", tmp_path)


def test_the_folder_may_come_from_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_idx(made := make_images(IMAGES["mnist"]), tmp_path)
    monkeypatch.setenv("THONECLS_DATA", str(tmp_path))
    assert is_present("mnist")
    assert_same(load_images("mnist"), made)


@pytest.mark.parametrize(
    ("name", "train", "test", "positive"),
    [
        ("cifar10", 50_000, 10_000, "airplane automobile ship truck"),
        ("stl10", 5_000, 8_000, "airplane car cat ship truck"),
        ("mnist", 60_000, 10_000, "0 2 4 6 8"),
        ("fashion-mnist", 60_000, 10_000, "Trouser Coat Sneaker"),
    ],
)
def test_the_catalogue_knows_the_published_sizes(
    name: str, train: int, test: int, positive: str
) -> None:
    spec = FULL[name]
    assert (sum(spec.train), sum(spec.test)) == (train, test)
    assert [spec.classes[number] for number in sorted(spec.positives)] == positive.split()
    assert len(spec.classes) == len(spec.train) == len(spec.test) == 10


def full_size(name: str) -> Images:
    """As many images as in the real dataset, each of one byte."""
    return make_images(replace(FULL[name], shape=(1, 1, 1)))


@pytest.mark.parametrize(
    ("name", "per_class", "unlabeled", "left", "positive_tests", "prior"),
    [
        ("cifar10", 225, 45_000, 5_000, 4_000, 0.4),
        ("stl10", 180, 99_000, 1_000, 4_000, None),
        ("mnist", 180, 54_000, 6_000, 4_926, 0.4915),
        ("fashion-mnist", 300, 54_000, 6_000, 3_000, 0.3),
    ],
)
def test_the_default_split_has_the_published_counts(
    name: str,
    per_class: int,
    unlabeled: int,
    left: int,
    positive_tests: int,
    prior: float | None,
) -> None:
    images = full_size(name)
    split = image_split(images, seed=3)
    counts = np.bincount(images.train_labels[split.train.positive], minlength=10)
    wanted = [per_class * (number in FULL[name].positives) for number in range(10)]
    assert counts.tolist() == wanted
    assert counts.sum() == 900
    assert len(split.train.unlabeled) == unlabeled
    assert (len(split.validation.positive), len(split.validation.unlabeled)) == (100, left)
    assert (len(split.test), split.test.sum()) == (len(images.test), positive_tests)
    assert split.prior == (prior and pytest.approx(prior, abs=1e-4))
    if name == "cifar10":
        assert np.bincount(images.train_labels[split.train.unlabeled]).tolist() == [4500] * 10


@given(st.data())
def test_what_a_split_promises(data: st.DataObject) -> None:
    counts = data.draw(st.lists(st.integers(4, 12), min_size=10, max_size=10))
    apart = data.draw(st.sampled_from([0, 9]))
    spec = replace(
        FULL["mnist"], shape=(1, 1, 1), train=tuple(counts), test=(1,) * 10, unlabeled=apart
    )
    images = make_images(spec)
    positives = data.draw(st.sets(st.integers(0, 9), min_size=1, max_size=9))
    labelled = data.draw(st.integers(1, len(positives)))
    unlabeled = data.draw(st.integers(1, apart) if apart else st.integers(sum(counts) // 2, 120))
    seed = data.draw(st.integers(0, 3))

    def ask() -> Any:
        return image_split(
            images,
            positives=positives,
            labelled=labelled,
            unlabeled=unlabeled,
            validation=0,
            seed=seed,
        )

    if unlabeled > len(images.pool):
        with pytest.raises(LabelError, match=f"must be 1 to {len(images.pool)}"):
            ask()
        return
    split, again = ask(), ask()
    train, left = split.train, split.validation.unlabeled
    assert len(train.positive) == len(set(train.positive)) == labelled
    assert len(train.unlabeled) == unlabeled
    # Every image of the pool is drawn or left, once.
    everything = np.sort(np.concatenate([train.unlabeled, left]))
    np.testing.assert_array_equal(everything, np.arange(len(images.pool)))
    # The labelled are of the positive classes, and evenly so.
    held = np.bincount(images.train_labels[train.positive], minlength=10)
    assert all(held[number] == 0 for number in set(range(10)) - positives)
    assert np.ptp(held[sorted(positives)]) <= 1
    if not apart:
        assert set(train.positive) <= set(train.unlabeled)
        shares = np.bincount(images.train_labels[train.unlabeled], minlength=10)
        assert np.abs(shares - unlabeled * np.array(counts) / sum(counts)).max() < 1
        assert split.prior == np.isin(images.train_labels[train.unlabeled], [*positives]).mean()
    np.testing.assert_array_equal(split.test, [label in positives for label in images.test_labels])
    np.testing.assert_array_equal(train.positive, again.train.positive)
    np.testing.assert_array_equal(train.unlabeled, again.train.unlabeled)


@pytest.mark.parametrize("name", ["cifar10", "stl10"])
def test_nothing_to_validate_on_is_trained_on(name: str) -> None:
    images = full_size(name)
    split = image_split(images, seed=1)
    assert np.intersect1d(split.train.positive, split.validation.positive).size == 0
    if name == "cifar10":
        assert np.intersect1d(split.train.unlabeled, split.validation.positive).size == 0
        assert set(split.validation.positive) <= set(split.validation.unlabeled)
    assert np.isin(images.train_labels[split.validation.positive], [*FULL[name].positives]).all()


def test_another_seed_draws_other_images() -> None:
    images = full_size("cifar10")
    one, two = (image_split(images, seed=seed).train for seed in (0, 1))
    assert len(np.intersect1d(one.positive, two.positive)) < 100
    assert not np.array_equal(one.unlabeled, two.unlabeled)


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"unlabeled": 50_001}, r"unlabeled must be 1 to 50000, .*cifar10 .*Got 50001"),
        ({"unlabeled": 0}, "unlabeled must be 1 to 50000"),
        ({"labelled": 0}, r"labelled must be at least 1.*Got 0 and 100"),
        ({"validation": -1}, "Got 900 and -1"),
        ({"labelled": 18_004}, r"4501 labelled .* class 0 to train .* 4500: .* or for more unlab"),
        ({"validation": 2004}, r"501 labelled .* class 0 to validate .* 500: .* or for fewer unl"),
        ({"unlabeled": 50_000}, r"25 labelled images of class 0 to validate .* from 0"),
        ({"positives": {3, 10}}, r"classes 0 to 9 of cifar10, and not all\. Got 3, 10"),
        ({"positives": set()}, "Got none instead"),
        ({"positives": range(10)}, "Got 0, 1, 2, 3"),
    ],
)
def test_more_than_there_is_cannot_be_split(asked: dict[str, Any], message: str) -> None:
    with pytest.raises(LabelError, match=message):
        image_split(full_size("cifar10"), **asked)


def test_stl_has_few_labels_to_give() -> None:
    with pytest.raises(LabelError, match=r"501 labelled images of class 0 to train .* 500:"):
        image_split(full_size("stl10"), labelled=2501)
    with pytest.raises(LabelError, match="unlabeled must be 1 to 100000"):
        image_split(full_size("stl10"), unlabeled=100_001)
