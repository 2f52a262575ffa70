"""Every dataset of the catalogue, from tiny files of the same form as the real ones."""

from __future__ import annotations

import hashlib
import threading
import warnings
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import rasterio
from numpy.typing import NDArray
from rasterio.errors import NotGeoreferencedWarning
from scipy.io import savemat

from thonecls.datasets import (
    DATASETS,
    Spec,
    data_root,
    download,
    houston_crop,
    is_present,
    load_dataset,
)
from thonecls.errors import ConfigError, FileError, LabelError
from thonecls.files import files_below

Array = NDArray[Any]


def make_raster(path: Path, bands: Array, *, bad: int | None = None, **profile: Any) -> None:
    count, height, width = bands.shape
    driver = "GTiff" if path.suffix == ".tif" else "ENVI"
    size = {"count": count, "height": height, "width": width, "dtype": bands.dtype}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotGeoreferencedWarning)
        with rasterio.open(path, "w", driver=driver, **size, **profile) as file:
            file.write(bands)
            for band in file.indexes if bad else ():
                file.update_tags(band, bbl="0" if band == bad else "1")


def make_file(path: Path, array: Array, variable: str = "it", *, hdf5: bool = False) -> None:
    """A file of the form its ending tells, from (C, H, W) or (H, W)."""
    path.parent.mkdir(parents=True, exist_ok=True)
    last = np.moveaxis(array, 0, 2) if array.ndim == 3 else array
    if path.suffix == ".npy":
        np.save(path, last)
    elif hdf5:
        with h5py.File(path, "w") as file:
            file[variable] = last.T
    elif path.suffix == ".mat":
        savemat(path, {variable: last})
    else:
        make_raster(path, array if array.ndim == 3 else array[None])


def make_arrays(spec: Spec) -> tuple[Array, Array]:
    """A cube whose values all differ, and a truth with every class that finds room."""
    cube = np.arange(1, 1 + np.prod(spec.cube_shape), dtype=np.uint16).reshape(spec.cube_shape)
    truth = np.arange(np.prod(spec.shape)).reshape(spec.shape) % (1 + len(spec.classes))
    return cube, truth.astype(np.uint8)


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """All datasets shrink, each to a size of its own."""
    monkeypatch.delenv("THONECLS_DATA", raising=False)
    for rows, (name, spec) in enumerate(DATASETS.items(), 3):
        tiny = replace(spec, shape=(rows, 25), bands=5, package=None)
        monkeypatch.setitem(DATASETS, name, tiny)
    south = replace(
        DATASETS["potsdam-south"], shape=(4, 6), corner=(2, 3), part_of=DATASETS["enmap-potsdam"]
    )
    monkeypatch.setitem(DATASETS, "potsdam-south", south)


FILES = {
    "honghu": ("honghu.mat", "honghu_gt.mat"),
    "honghu-full": ("WHU-Hi-HongHu", "WHU-Hi-HongHu_gt"),
    "longkou": ("WHU-Hi-LongKou.bsq", "WHU-Hi-LongKou_gt.bsq"),
    "hanchuan": ("WHU_Hi_HanChuan.mat", "WHU_Hi_HanChuan_gt.mat"),
    "indian-pines": ("Indian_pines_corrected.npy", "Indian_pines_gt.npy"),
    "pavia-university": ("PaviaU.mat", "PaviaU_gt.mat"),
    "pavia-centre": ("Pavia.mat", "Pavia_gt.mat"),
    "salinas": ("Salinas_corrected.mat", "Salinas_gt.mat"),
    "ksc": ("KSC.mat", "KSC_gt.mat"),
    "botswana": ("Botswana.dat", "Botswana_gt.dat"),
    "houston-2013": ("2013_IEEE_GRSS_DF_Contest_CASI.tif", "houston_GT.mat"),
    "enmap-potsdam": ("scene.tif", "truth.tif"),
    "potsdam-south": ("scene.tif", "truth.tif"),
    "zion": ("zion/scene.tif", "zion/truth.tif"),
    "sentinel2": ("sentinel2/scene.tif", "sentinel2/truth.tif"),
}


def make_dataset(name: str, folder: Path) -> tuple[Array, Array]:
    """Files of a dataset, and the arrays in them."""
    spec = DATASETS[name].part_of or DATASETS[name]
    cube, truth = make_arrays(spec)
    for file, array, stems in zip(FILES[name], (cube, truth), (spec.cube, spec.truth), strict=True):
        variable = stems.get(Path(file).stem) or "it"
        make_file(folder / file, array, variable, hdf5=name == "honghu")
    return cube, truth


@pytest.mark.parametrize("name", FILES)
def test_every_dataset_loads_from_files_of_its_form(name: str, tmp_path: Path) -> None:
    assert not is_present(name, tmp_path)
    cube, truth = make_dataset(name, tmp_path / "below")
    assert is_present(name, tmp_path)
    data = load_dataset(name, tmp_path)
    if name == "potsdam-south":
        cube, truth = cube[:, 2:6, 3:9], truth[2:6, 3:9]
    np.testing.assert_array_equal(data.scene.cube, cube)
    np.testing.assert_array_equal(data.truth, truth)
    assert data.truth.dtype == np.uint8
    assert (data.name, data.classes) == (name, DATASETS[name].classes)
    assert data.scene.valid.all()
    assert data.train is data.test is None


def test_houston_takes_the_labels_of_pure_blocks(tmp_path: Path) -> None:
    spec = DATASETS["houston-crop"]
    cube, _ = make_arrays(spec)
    labels = np.full(spec.truth_shape, 3, dtype=np.uint8)
    labels[0, 0] = 1
    arrays = {"hyprImg": np.moveaxis(cube, 0, 2), "clasLabs": labels, "rgbImg": np.ones((2, 2, 3))}
    savemat(tmp_path / "houston_dataset.mat", arrays)
    data = houston_crop(tmp_path)
    np.testing.assert_array_equal(data.scene.cube, cube)
    assert data.truth.shape == spec.shape
    assert (data.truth[0, 0], data.truth[0, 1], data.truth[-1, -1]) == (0, 3, 3)


def test_potsdam_leaves_bad_bands_and_nodata_out(tmp_path: Path) -> None:
    cube, truth = make_arrays(DATASETS["enmap-potsdam"])
    cube = cube.astype(np.int16)
    cube[:, 0, 1] = -1
    make_raster(tmp_path / "scene.tif", np.insert(cube, 2, -1, axis=0), bad=3, nodata=-1)
    make_raster(tmp_path / "truth.tif", truth[None])
    data = load_dataset("enmap-potsdam", tmp_path)
    np.testing.assert_array_equal(data.scene.cube, cube)
    assert np.argwhere(~data.scene.valid).tolist() == [[0, 1]]
    assert (truth[0, 1], data.truth[0, 1]) == (1, 0)
    np.testing.assert_array_equal(data.truth[1:], truth[1:])


@pytest.mark.parametrize("order", [(0, 1, 2), (1, 2, 0), (2, 1, 0)])
def test_the_order_of_the_axes_follows_from_the_sizes(
    order: tuple[int, int, int], tmp_path: Path
) -> None:
    cube, truth = make_arrays(DATASETS["ksc"])
    np.save(tmp_path / "KSC.npy", cube.transpose(order))
    np.save(tmp_path / "KSC_gt.npy", truth.T if order == (2, 1, 0) else truth)
    data = load_dataset("ksc", tmp_path)
    np.testing.assert_array_equal(data.scene.cube, cube)
    np.testing.assert_array_equal(data.truth, truth)


def test_fixed_splits_are_loaded_when_both_files_are_there(tmp_path: Path) -> None:
    _, truth = make_dataset("longkou", tmp_path)
    shape = DATASETS["longkou"].shape
    train = np.where(np.arange(truth.size).reshape(shape) < 30, truth, 0).astype(np.uint8)
    make_file(tmp_path / "LKTrain100.mat", train, "LKtrain100")
    assert load_dataset("longkou", tmp_path).train is None
    make_file(tmp_path / "LKTest100.mat", truth - train, "LKtest100")
    data = load_dataset("longkou", tmp_path)
    assert data.train is not None
    assert data.test is not None
    np.testing.assert_array_equal(data.train, train)
    np.testing.assert_array_equal(data.test, truth - train)
    make_file(tmp_path / "LKTest100.mat", truth, "LKtest100")
    with pytest.raises(LabelError, match=r"LKTest100.mat share 27"):
        load_dataset("longkou", tmp_path)


def test_splits_of_one_name_belong_to_the_dataset_beside_them(tmp_path: Path) -> None:
    for name in ("hanchuan", "longkou"):
        _, truth = make_dataset(name, tmp_path / f"WHU {name}")
        make_file(tmp_path / f"WHU {name}/samples/Train100.mat", truth)
        make_file(tmp_path / f"WHU {name}/samples/Test100.mat", 0 * truth)
    for name in ("hanchuan", "longkou"):
        train = load_dataset(name, tmp_path).train
        assert train is not None
        assert train.shape == DATASETS[name].shape
    (tmp_path / "WHU longkou/samples/Train100.mat").unlink()
    with pytest.raises(FileError, match=r"it is of hanchuan; .* keep it in a folder hanchuan"):
        load_dataset("longkou", tmp_path)
    (tmp_path / "WHU hanchuan").rename(tmp_path / "hanchuan")
    assert load_dataset("longkou", tmp_path).train is None


def test_the_crop_and_the_full_scene_of_honghu_are_told_apart(tmp_path: Path) -> None:
    make_dataset("honghu-full", tmp_path / "public")
    assert not is_present("honghu", tmp_path)
    with pytest.raises(FileError, match="the public scene is another dataset, honghu-full"):
        load_dataset("honghu", tmp_path)
    make_dataset("honghu", tmp_path / "public")
    assert load_dataset("honghu", tmp_path).scene.shape == DATASETS["honghu"].shape
    make_file(tmp_path / "WHU_Hi_HongHu.npy", make_arrays(DATASETS["honghu"])[0])
    with pytest.raises(FileError, match="keep it in a folder honghu"):
        load_dataset("honghu-full", tmp_path)


def test_the_crop_of_honghu_may_have_the_public_name_in_a_folder_of_its_own(tmp_path: Path) -> None:
    cube, truth = make_arrays(DATASETS["honghu"])
    make_file(tmp_path / "honghu" / "WHU_Hi_HongHu.npy", cube)
    make_file(tmp_path / "honghu" / "WHU_Hi_HongHu_gt.npy", truth)
    assert not is_present("honghu-full", tmp_path)
    assert load_dataset("honghu", tmp_path).scene.shape == DATASETS["honghu"].shape


def test_a_folder_of_a_datasets_name_is_its_own(tmp_path: Path) -> None:
    make_dataset("honghu-full", tmp_path / "honghu-full")
    assert not is_present("honghu", tmp_path)
    assert load_dataset("honghu-full", tmp_path).name == "honghu-full"
    make_file(tmp_path / "WHU_Hi_HongHu.npy", np.ones((5, 2, 2)))
    assert load_dataset("honghu-full", tmp_path).name == "honghu-full"


def test_scenes_whose_files_have_one_name_are_told_apart_by_their_folders(tmp_path: Path) -> None:
    root, elsewhere = tmp_path / "root", tmp_path / "elsewhere"
    root.mkdir()
    make_dataset("enmap-potsdam", elsewhere / "enmap_potsdam")
    (root / "enmap_potsdam").symlink_to(elsewhere / "enmap_potsdam")
    assert is_present("enmap-potsdam", root)
    assert not is_present("zion", root)
    assert not is_present("sentinel2", root)
    make_dataset("sentinel2", elsewhere)
    make_dataset("zion", elsewhere)
    for name in ("sentinel2", "zion"):
        (root / name).symlink_to(elsewhere / name)
    for name in ("enmap-potsdam", "sentinel2", "zion"):
        cube, truth = make_arrays(DATASETS[name])
        data = load_dataset(name, root)
        np.testing.assert_array_equal(data.scene.cube, cube)
        np.testing.assert_array_equal(data.truth, truth)
    assert load_dataset("potsdam-south", root).scene.shape == DATASETS["potsdam-south"].shape
    assert load_dataset("zion", root / "zion").name == "zion"
    (root / "enmap_potsdam").unlink()
    assert not is_present("enmap-potsdam", root)


def test_a_truth_of_another_size_is_refused(tmp_path: Path) -> None:
    make_dataset("ksc", tmp_path)
    make_file(tmp_path / "KSC_gt.mat", np.zeros((2, 2), dtype=np.uint8), "KSC_gt")
    with pytest.raises(FileError, match=r"needs an array of 11×25; .*KSC_gt.mat holds 2×2: fetch"):
        load_dataset("ksc", tmp_path)


def test_unknown_class_numbers_are_refused(tmp_path: Path) -> None:
    _, truth = make_dataset("ksc", tmp_path)
    make_file(tmp_path / "KSC_gt.mat", np.where(truth == 3, 14, truth), "KSC_gt")
    with pytest.raises(LabelError, match=r"of ksc are 1 to 13, .*KSC_gt\.mat also holds 14: fetch"):
        load_dataset("ksc", tmp_path)
    make_file(tmp_path / "KSC_gt.mat", truth / 2, "KSC_gt")
    with pytest.raises(LabelError, match=r"also holds 0\.5, 1\.5"):
        load_dataset("ksc", tmp_path)


@pytest.mark.parametrize(
    "name", ["honghu", "honghu-full", "longkou", "indian-pines", "ksc", "enmap-potsdam"]
)
@pytest.mark.parametrize("part", [0, 1])
def test_truncated_files_are_named_with_what_to_do(name: str, part: int, tmp_path: Path) -> None:
    make_dataset(name, tmp_path)
    path = tmp_path / FILES[name][part]
    path.write_bytes(path.read_bytes()[: path.stat().st_size * 2 // 3])
    where = DATASETS[name].where[:20]
    with pytest.raises(FileError, match=f"{path.name}.*To get it again: .*{where}"):
        load_dataset(name, tmp_path)


def test_envi_data_need_their_header(tmp_path: Path) -> None:
    make_dataset("longkou", tmp_path)
    (tmp_path / "WHU-Hi-LongKou.hdr").unlink()
    with pytest.raises(FileError, match=r"needs its \.hdr beside it"):
        load_dataset("longkou", tmp_path)


def test_missing_files_are_named_with_where_to_get_them(tmp_path: Path) -> None:
    with pytest.raises(FileError, match=r"a file houston_dataset \(\.mat, .*: put houston_dataset"):
        houston_crop(tmp_path)
    make_dataset("pavia-university", tmp_path)
    (tmp_path / "PaviaU_gt.mat").unlink()
    assert not is_present("pavia-university", tmp_path)
    with pytest.raises(
        FileError,
        match=r"PaviaU_gt .*: fetch the files by `thonecls datasets pavia-university`, or get",
    ):
        load_dataset("pavia-university", tmp_path)


def test_unknown_names_are_refused_with_the_known_ones(tmp_path: Path) -> None:
    for ask in (load_dataset, is_present, download):
        with pytest.raises(ConfigError, match=r"one of honghu, hanchuan, .*Got 'wuhan'"):
            ask("wuhan", tmp_path)


def test_the_folder_is_the_one_given_or_of_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert data_root() == Path("data")
    monkeypatch.setenv("THONECLS_DATA", str(tmp_path))
    assert data_root() == tmp_path
    assert data_root(Path("other")) == Path("other")
    make_dataset("salinas", tmp_path)
    assert load_dataset("salinas").name == "salinas"


@pytest.fixture
def address(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Where the files of tmp_path/public are served."""

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

        def send_header(self, keyword: str, value: str) -> None:
            if keyword == "Content-Length" and "broken" in self.path:
                value = str(int(value) + 1)  # as if the connection broke before the end
            super().send_header(keyword, value)

    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    handler = partial(Quiet, directory=str(tmp_path / "public"))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_a_download_fills_the_datasets_folder(
    address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cube, _ = make_dataset("ksc", tmp_path / "public")
    checksum = "md5:" + hashlib.md5((tmp_path / "public/KSC_gt.mat").read_bytes()).hexdigest()
    urls = {f"{address}/KSC.mat?download=1": None, f"{address}/KSC_gt.mat": checksum}
    monkeypatch.setitem(DATASETS, "ksc", replace(DATASETS["ksc"], urls=urls))
    root = tmp_path / "data"
    download("ksc", root)
    assert sorted(path.name for path in (root / "ksc").iterdir()) == ["KSC.mat", "KSC_gt.mat"]
    np.testing.assert_array_equal(load_dataset("ksc", root).scene.cube, cube)
    (tmp_path / "public/KSC.mat").unlink()
    download("ksc", root)  # what is there is not fetched again
    assert is_present("ksc", root)


@pytest.mark.parametrize(
    ("file", "checksum", "reason"),
    [
        ("KSC.mat", "md5:" + "0" * 32, "hash of downloaded file"),
        ("none.mat", None, "404"),
        ("KSC.mat?broken", None, "IncompleteRead"),
    ],
)
def test_a_failed_download_leaves_no_file(
    file: str,
    checksum: str | None,
    reason: str,
    address: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    make_dataset("ksc", tmp_path / "public")
    spec = replace(DATASETS["ksc"], urls={f"{address}/{file}": checksum})
    monkeypatch.setitem(DATASETS, "ksc", spec)
    with pytest.raises(FileError, match=rf"cannot download .*{reason}.* with a browser and put it"):
        download("ksc", tmp_path / "data")
    assert not [path for path in (tmp_path / "data").rglob("*") if path.is_file()]


def test_what_has_no_address_is_not_downloaded(tmp_path: Path) -> None:
    with pytest.raises(FileError, match=r"honghu-full has no address .*: get WHU-Hi-HongHu from"):
        download("honghu-full", tmp_path)


def test_files_behind_links_are_found_and_a_loop_of_links_ends(tmp_path: Path) -> None:
    root, elsewhere = tmp_path / "root", tmp_path / "elsewhere"
    (elsewhere / "deep").mkdir(parents=True)
    root.mkdir()
    file = elsewhere / "deep" / "a.npy"
    file.touch()
    (root / "linked").symlink_to(elsewhere)
    (elsewhere / "deep" / "back").symlink_to(root)
    (root / "lost.npy").symlink_to(tmp_path / "nothing")
    assert files_below(root) == [root / "linked" / "deep" / "a.npy"]
