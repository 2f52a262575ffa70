"""Array files: the right array, the right axis, or a clear error."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import scipy.io
from numpy.typing import NDArray

from thonecls.errors import FileError, LabelError, SceneError
from thonecls.io.arrays import open_scene, read_array, read_positives
from thonecls.io.vector import is_vector
from thonecls.scene import read_all

CUBE = np.arange(5 * 6 * 7, dtype=np.uint16).reshape(5, 6, 7)  # rows × columns × bands


def write(path: Path, cube: NDArray[Any] = CUBE, name: str = "cube") -> Path:
    if path.suffix == ".npy":
        np.save(path, cube)
    elif path.suffix == ".npz":
        np.savez(path, allow_pickle=False, **{name: cube})
    elif path.name.endswith("73.mat"):
        with h5py.File(path, "w") as file:
            file[name] = cube.T  # as MATLAB stores it
    else:
        scipy.io.savemat(path, {name: cube})
    return path


@pytest.mark.parametrize("file", ["a.npy", "a.npz", "a.mat", "a73.mat"])
def test_every_form_reads_the_same(tmp_path: Path, file: str) -> None:
    path = write(tmp_path / file)
    np.testing.assert_array_equal(read_array(path, axes=3), CUBE)
    scene = open_scene(path, labels=np.zeros((5, 6), dtype=bool))
    np.testing.assert_array_equal(read_all(scene).cube, np.moveaxis(CUBE, 2, 0))


def test_an_array_is_chosen_by_its_axes_or_its_name(tmp_path: Path) -> None:
    path = tmp_path / "two.mat"
    scipy.io.savemat(path, {"cube": CUBE, "truth": CUBE[..., 0], "again": CUBE})
    assert read_array(path, axes=2).shape == (5, 6)
    assert read_array(path, axes=3, variable="again").shape == (5, 6, 7)
    with pytest.raises(
        FileError, match=r"more than one array of 3 axes; it has: .*again \(5, 6, 7\)"
    ):
        read_array(path, axes=3)
    with pytest.raises(FileError, match="has no array 'other'"):
        read_array(path, axes=3, variable="other")
    with pytest.raises(FileError, match="no array of 4 axes"):
        read_array(path, axes=4)


@pytest.mark.parametrize("file", ["a.npy", "a.npz", "a.mat", "a73.mat"])
@pytest.mark.parametrize("keep", [0, 3, 60, -20])
def test_truncated_files_are_refused(tmp_path: Path, file: str, keep: int) -> None:
    path = write(tmp_path / file)
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(FileError, match=f"cannot read .*{path.stem}"):
        read_array(path, axes=3)


def test_files_that_are_missing_or_of_another_form_are_refused(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="there is no file"):
        read_array(tmp_path / "none.npy", axes=3)
    with pytest.raises(FileError, match="there is no file"):
        read_positives(tmp_path / "none.csv")
    (tmp_path / "scene.txt").write_text("hello")
    with pytest.raises(FileError, match=r"unknown ending '\.txt'"):
        read_array(tmp_path / "scene.txt", axes=3)


def test_pickles_are_not_opened(tmp_path: Path) -> None:
    np.save(tmp_path / "p.npy", np.array([{"a": 1}], dtype=object), allow_pickle=True)
    with pytest.raises(FileError, match="cannot read"):
        read_array(tmp_path / "p.npy", axes=1)


def test_the_axis_of_the_bands_is_never_guessed(tmp_path: Path) -> None:
    path = write(tmp_path / "square.npy", np.zeros((6, 6, 6)))
    with pytest.raises(SceneError, match=r"cannot tell which axis .* 'bands_axis'"):
        open_scene(path, labels=np.zeros((6, 6), dtype=bool))
    assert open_scene(path, axis="last").bands == 6
    path = write(tmp_path / "cube.npy")
    assert open_scene(path, bands=7).shape == (5, 6)
    with pytest.raises(SceneError, match="the model's 99 bands"):
        open_scene(path, bands=99)
    assert open_scene(path, labels=np.array([[5, 6]])).shape == (6, 7)


def test_a_class_is_picked_from_a_truth_map(tmp_path: Path) -> None:
    truth = np.array([[0, 1], [2, 2]])
    path = write(tmp_path / "truth.npy", truth)
    assert read_positives(path, target=2).tolist() == [[False, False], [True, True]]


@pytest.mark.parametrize(
    "text", ["row,column\n1,2\n3,4\n", "1, 2\n\n3, 4", "\ufeffRow,Col\n1,2\n3,4"]
)
def test_pixel_lists_in_csv(tmp_path: Path, text: str) -> None:
    path = tmp_path / "pixels.csv"
    path.write_text(text, encoding="utf-8")
    assert read_positives(path).tolist() == [[1, 2], [3, 4]]


@pytest.mark.parametrize(
    ("content", "rule"),
    [
        (b"x,y\n1,2\n", "its columns must be row,column"),
        (b"1,2,3\n", "two whole numbers a line"),
        (b"1,2\n1.5,3\n", "two whole numbers a line"),
        (b"\xff\xfe1,2", "cannot read .* UTF-8"),
    ],
)
def test_bad_pixel_lists_are_refused(tmp_path: Path, content: bytes, rule: str) -> None:
    path = tmp_path / "pixels.csv"
    path.write_bytes(content)
    with pytest.raises((FileError, LabelError), match=rule):
        read_positives(path)


@pytest.mark.parametrize(
    "text",
    [
        "row,column\n3,4\n5,6\n",
        '"row","column"\n3,4\n5,6\n',
        '"row","column"\n"3","4"\n"5","6"\n',
        "row;column\n3;4\n5;6\n",
        "row\tcol\n3\t4\n5\t6\n",
        '"","row","column"\n"1",3,4\n"2",5,6\n',
        "3;4\n5;6\n",
        "\ufeffRow,Column\r\n3,4\r\n5,6\r\n",
    ],
)
def test_pixels_are_read_as_r_and_spreadsheets_write_them(text: str, tmp_path: Path) -> None:
    path = tmp_path / "l.csv"
    path.write_bytes(text.encode())
    assert not is_vector(path)
    assert read_positives(path).tolist() == [[3, 4], [5, 6]]


def test_an_array_that_nobody_asks_for_is_not_read(tmp_path: Path) -> None:
    cube = np.arange(24.0).reshape(2, 3, 4)
    scipy.io.savemat(tmp_path / "a.mat", {"cube": cube, "name": "oak", "flat": np.eye(2)})
    np.savez(tmp_path / "a.npz", cube=cube, odd=np.array([{}], dtype=object))
    for name in ("a.mat", "a.npz"):
        np.testing.assert_array_equal(read_array(tmp_path / name, axes=3), cube)
