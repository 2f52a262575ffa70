"""Models: saved and loaded to the same bits, and refused when anything is wrong."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from thonecls.datasets import Dataset, synthetic
from thonecls.errors import ConfigError, ModelError
from thonecls.method import store
from thonecls.method.frozen import HALO, freeze
from thonecls.method.model import Model
from thonecls.method.net import FreeOCNet
from thonecls.scene import Scene, as_scene, band_statistics, standardize


@pytest.fixture(scope="module")
def model() -> Model:
    data = synthetic(height=12, width=10, bands=4)
    torch.manual_seed(0)
    net = FreeOCNet(4, width=0.25).eval()
    statistics = band_statistics(data.scene)
    frozen = freeze(net, torch.from_numpy(standardize(data.scene, statistics))[None])
    return Model(net, statistics, frozen, {"config": {"order": 2}, "history": {}})


@pytest.fixture
def saved(model: Model, tmp_path: Path) -> Path:
    model.save(tmp_path / "model.safetensors")
    return tmp_path / "model.safetensors"


def test_a_loaded_model_maps_to_the_same_bits(model: Model, saved: Path) -> None:
    scene = synthetic(height=17, width=9, bands=4, seed=5).scene
    loaded = Model.load(saved)
    np.testing.assert_array_equal(loaded.score(scene), model.score(scene))
    assert loaded.training == model.training
    assert loaded.bands == 4


def test_scores_are_probabilities_of_the_scene_shape(model: Model) -> None:
    probability = model.score(synthetic(height=13, width=8, bands=4).scene)
    assert probability.shape == (13, 8)
    assert probability.dtype == np.float32
    assert ((probability >= 0) & (probability <= 1)).all()


@settings(max_examples=12)
@given(st.integers(1, 3 * HALO), st.integers(1, 3 * HALO), st.integers(1, HALO), st.integers(0, 99))
def test_tiles_of_any_size_give_the_map_of_the_whole_scene(
    model: Model, rows: int, columns: int, tile: int, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    scene = as_scene(rng.normal(size=(4, rows, columns)))
    whole = model.score(scene, tile=10_000)
    np.testing.assert_allclose(model.score(scene, tile=max(tile, 24)), whole, atol=1e-5)


def test_a_window_is_read_once_and_no_larger_than_tile_and_halo(model: Model) -> None:
    shape, tile = (5 * HALO, 4 * HALO), 2 * HALO
    rng = np.random.default_rng(0)
    valid = rng.random(shape) > 0.1
    scene = as_scene(rng.normal(size=(4, *shape)), valid=valid)
    sizes = []

    class Spy:
        bands, shape = scene.bands, scene.shape

        def read(self, rows: slice, columns: slice) -> Scene:
            sizes.append((rows.stop - rows.start, columns.stop - columns.start))
            return scene.read(rows, columns)

    covered = np.zeros(shape, dtype=int)
    for rows, columns, part in model.score_windows(Spy(), tile=tile):
        covered[rows, columns] += 1
        np.testing.assert_array_equal(np.isnan(part), ~valid[rows, columns])
    assert (covered == 1).all()
    assert len(sizes) == 6
    assert max(max(size) for size in sizes) <= tile + 2 * HALO


def test_another_number_of_bands_is_refused(model: Model, field_scene: Dataset) -> None:
    with pytest.raises(ModelError, match="trained on 4 bands, the scene has 6"):
        model.score(field_scene.scene)


def test_an_unknown_device_is_refused(model: Model) -> None:
    with pytest.raises(ConfigError, match="cannot be used here"):
        model.score(synthetic(bands=4).scene, device="abacus")


@pytest.mark.parametrize("keep", [0, 4, 100, -1, -5000])
def test_truncated_files_are_refused(saved: Path, keep: int) -> None:
    saved.write_bytes(saved.read_bytes()[:keep])
    with pytest.raises(ModelError, match="damaged"):
        Model.load(saved)


@settings(max_examples=60)
@given(st.data())
def test_any_flipped_bit_is_noticed(model: Model, data: st.DataObject) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "m.safetensors"
        model.save(path)
        content = bytearray(path.read_bytes())
        header = 8 + struct.unpack("<Q", content[:8])[0]
        end = data.draw(st.sampled_from([8, header, len(content)]))
        place = data.draw(st.integers(0, end - 1))
        content[place] ^= 1 << data.draw(st.integers(0, 7))
        path.write_bytes(content)
        with pytest.raises(ModelError):
            Model.load(path)


def test_a_model_of_another_format_is_refused(
    model: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(store, "FORMAT", 99)
        model.save(tmp_path / "future.safetensors")
    with pytest.raises(ModelError, match="has model format 99, this version reads"):
        Model.load(tmp_path / "future.safetensors")


def test_other_files_are_refused(tmp_path: Path) -> None:
    from safetensors.torch import save_file

    with pytest.raises(ModelError, match="cannot read the model"):
        Model.load(tmp_path / "none.safetensors")
    with pytest.raises(ModelError, match="cannot read the model"):
        Model.load(tmp_path)
    (tmp_path / "text").write_text("hello")
    with pytest.raises(ModelError, match="not a thonecls model"):
        Model.load(tmp_path / "text")
    save_file({"weight": torch.zeros(3)}, tmp_path / "other.safetensors")
    with pytest.raises(ModelError, match="not those of a thonecls model"):
        Model.load(tmp_path / "other.safetensors")


def test_the_file_is_readable_by_any_safetensors_reader(saved: Path) -> None:
    from safetensors import safe_open

    with safe_open(saved, framework="numpy") as file:
        about = json.loads(file.metadata()["thonecls"])
        assert about["net"] == {"bands": 4, "width": 0.25}
        assert file.get_tensor("bands.mean").shape == (4,)


def test_a_failed_write_leaves_the_old_model(
    model: Model, saved: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = saved.read_bytes()

    def fail(*_: object) -> None:
        raise OSError("disk full")

    with monkeypatch.context() as patch:
        patch.setattr("os.fsync", fail)
        with pytest.raises(OSError, match="disk full"):
            model.save(saved)
    assert saved.read_bytes() == before
    assert [p.name for p in saved.parent.iterdir()] == [saved.name]
