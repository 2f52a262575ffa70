"""The command line, run as a user runs it."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path

import matplotlib.image
import numpy as np
import pytest

from commands import run
from thonecls.datasets import Dataset
from thonecls.method.model import Model
from thonecls.methods import IMAGE_METHODS
from thonecls.methods.spectral_networks import SETTINGS
from thonecls.workflow.options import repeat_command

QUICK = ["--epochs", "1", "--batches", "2", "--unlabeled", "50", "--width", "0.25"]
pytestmark = pytest.mark.usefixtures("white_pictures")


@pytest.fixture(autouse=True, scope="module")
def one_opinion() -> Iterator[None]:
    """A matched filter alone beside every training: what others say is not the subject here."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("thonecls.workflow.crossfit.OPINIONS", ("matched-filter",))
        yield


@pytest.fixture
def files(field_scene: Dataset, tmp_path: Path) -> Path:
    """A folder with cube.npy (bands first), truth.npy, and nothing else."""
    np.save(tmp_path / "cube.npy", field_scene.scene.cube)
    np.save(tmp_path / "truth.npy", field_scene.truth)
    return tmp_path


def train(files: Path, *more: object) -> int:
    """Train quickly on class 1, unless `more` says otherwise."""
    command = ["train", files / "cube.npy", files / "truth.npy", "--out", files / "run"]
    defaults = ["--target", "1", "--folds", "0", *QUICK]
    for flag, value in zip(defaults[::2], defaults[1::2], strict=True):
        command += [] if flag in more else [flag, value]
    return run(*command, *more)


@pytest.mark.usefixtures("drawn")
def test_train_then_map_then_info(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert train(files) == 0
    names = {p.name for p in (files / "run").iterdir()}
    assert names == {
        "model.safetensors",
        "probability.npy",
        "map.npy",
        "novelty.npy",
        "overview.png",
        "curves.png",
        "evidence.npz",
        "report.html",
        "report.json",
        "run.json",
    }
    probability = np.load(files / "run/probability.npy")
    mapped = np.load(files / "run/map.npy")
    np.testing.assert_array_equal(mapped, probability > 0.5)
    assert matplotlib.image.imread(files / "run/overview.png").shape[1] > 600

    model = files / "run/model.safetensors"
    assert run("map", model, files / "cube.npy", "--out", files / "again", "--threshold", 0.3) == 0
    np.testing.assert_array_equal(np.load(files / "again/probability.npy"), probability)
    np.testing.assert_array_equal(np.load(files / "again/map.npy"), probability > 0.3)

    capsys.readouterr()
    assert run("info", model) == 0
    assert "bands" in capsys.readouterr().out
    assert run("info", files / "cube.npy", "--json") == 0
    assert json.loads(capsys.readouterr().out)["shape"] == [6, 21, 18]


def test_json_is_the_only_output(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert train(files, "--json") == 0
    captured = capsys.readouterr()
    summary = json.loads(captured.out)
    assert captured.err == ""
    assert summary == json.loads((files / "run/run.json").read_text("utf-8"))
    assert summary["finished"]
    assert summary["config"]["epochs"] == 1
    assert summary["config"]["order"] == 2


def test_progress_is_told_to_programs_in_lines(
    files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["train", files / "cube.npy", files / "truth.npy", "--target", 1, "--out", files / "r"]
    assert run(*words, *QUICK, "--folds", 2, "--json", "--progress", "json") == 0
    said = capsys.readouterr()
    assert json.loads(said.out)["finished"]
    lines = [json.loads(line) for line in said.err.splitlines()]
    stages = [line["stage"] for line in lines]
    assert list(dict.fromkeys(stages)) == ["train", "judge", "map"]
    assert sorted(stages, key=["train", "judge", "map"].index) == stages
    for stage in ("train", "judge", "map"):
        told = [line for line in lines if line["stage"] == stage]
        done = [line["done"] for line in told]
        assert done == sorted(done)
        assert done[-1] == told[-1]["total"]


def test_flags_override_the_preset(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert train(files, "--preset", "paper", "--order", "3", "--json") == 0
    config = json.loads(capsys.readouterr().out)["config"]
    assert (config["order"], config["rate"], config["epochs"]) == (3, 1e-4, 1)


def test_same_seed_same_map(files: Path) -> None:
    assert train(files, "--seed", 5) == 0
    first = np.load(files / "run/probability.npy")
    assert train(files, "--seed", 5, "--overwrite") == 0
    np.testing.assert_array_equal(np.load(files / "run/probability.npy"), first)


def test_a_model_is_not_overwritten_by_accident(
    files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert train(files) == 0
    before = (files / "run/model.safetensors").read_bytes()
    assert train(files, "--seed", 9) == 2
    assert "holds a model or a map already" in capsys.readouterr().err
    assert (files / "run/model.safetensors").read_bytes() == before


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        (["--target", "9"], "no positive pixel is labelled"),
        (["--order", "0"], "'order' must be 1 or more. Got 0"),
        (["--beta=-1"], "'beta' must be 0 or more. Got -1.0"),
        (["--threshold", "1.5"], "'threshold' must be from 0 to 1"),
        (["--labels-variable", "x"], "has no array 'x'"),
        (["--epochs", "many"], 'unable to convert "many" into int'),
        (["--epoch", "3"], "Did you mean --epochs?"),
        (["--device", "abacus"], "the device 'abacus' cannot be used here"),
        (["--device", "cuda"], "the device 'cuda' cannot be used here"),
        (["--seed", "99999999999999999999"], "'seed' must be from 0"),
        (["--loss", "hinge"], "'loss' must be one of taylor, variational"),
        (["--budget", "100"], "too large to be seen whole at every step"),
        (["--bands-axis", "last"], "labels have shape"),
    ],
)
def test_bad_options_write_nothing(
    files: Path, change: list[str], rule: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert train(files, *change) == 2
    captured = capsys.readouterr()
    assert rule in " ".join(captured.err.split())
    assert "Traceback" not in captured.err + captured.out
    assert not (files / "run").exists()


def _bad_cube(files: Path, kind: str) -> None:
    cube = np.load(files / "cube.npy")
    if kind == "nan":
        cube[0, 0, 0] = np.nan
    elif kind == "infinite":
        cube[0, 0, 0] = np.inf
    elif kind == "one band":
        cube = cube[:1]
    elif kind == "another shape":
        cube = cube[:, 2:]
    np.save(files / "cube.npy", cube)
    if kind == "unreadable":
        (files / "cube.npy").write_bytes(b"not an array")
    elif kind == "missing":
        (files / "cube.npy").unlink()
    elif kind == "all positive":
        np.save(files / "truth.npy", np.ones((21, 18)))
    elif kind == "one unlabeled":
        truth = np.ones((21, 18))
        truth[0, 0] = 0
        np.save(files / "truth.npy", truth)


@pytest.mark.parametrize(
    ("kind", "rule"),
    [
        ("nan", "NaN or infinite values in 1 of 378 pixels"),
        ("infinite", "NaN or infinite values in 1 of 378 pixels"),
        ("one band", "at least 2 bands"),
        ("another shape", "cannot tell which axis"),
        ("unreadable", "cannot read"),
        ("missing", "there is no file"),
        ("all positive", "every pixel is labelled positive"),
        ("one unlabeled", "at least 2 unlabeled pixels are needed"),
    ],
)
def test_bad_input_writes_nothing(
    files: Path, kind: str, rule: str, capsys: pytest.CaptureFixture[str]
) -> None:
    _bad_cube(files, kind)
    assert train(files) == 2
    captured = capsys.readouterr()
    assert rule in " ".join(captured.err.split())
    assert "Traceback" not in captured.err
    assert not (files / "run").exists()


def test_errors_as_json(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert train(files, "--target", "9", "--json") == 2
    assert "no positive pixel" in json.loads(capsys.readouterr().out)["error"]
    assert train(files, "--epoch", "1", "--json") == 2
    assert "Did you mean --epochs?" in json.loads(capsys.readouterr().out)["error"]


def test_a_constant_band_is_handled(files: Path) -> None:
    cube = np.load(files / "cube.npy")
    cube[3] = 17
    np.save(files / "cube.npy", cube)
    assert train(files) == 0
    assert np.isfinite(np.load(files / "run/probability.npy")).all()


def test_a_model_for_other_bands_is_refused(
    files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert train(files) == 0
    np.save(files / "other.npy", np.zeros((21, 18, 9)))
    model = files / "run/model.safetensors"
    assert run("map", model, files / "other.npy", "--out", files / "x") == 2
    assert "the model's 6 bands" in " ".join(capsys.readouterr().err.split())
    command = ["map", model, files / "other.npy", "--bands-axis", "last", "--out", files / "x"]
    assert run(*command) == 2
    assert "trained on 6 bands, the scene has 9" in " ".join(capsys.readouterr().err.split())
    assert not (files / "x").exists()


def test_mapping_a_cube_with_nan_writes_nothing(
    files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert train(files) == 0
    _bad_cube(files, "nan")
    model = files / "run/model.safetensors"
    assert run("map", model, files / "cube.npy", "--out", files / "x") == 2
    assert "NaN or infinite" in " ".join(capsys.readouterr().err.split())
    assert not (files / "x").exists()


def test_an_output_that_is_a_file_is_refused_before_training(
    files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (files / "run").write_text("in the way")
    assert train(files) == 2
    assert "is a file, not a folder" in " ".join(capsys.readouterr().err.split())


def test_overwriting_begins_only_when_the_input_is_good(
    files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert train(files) == 0
    (files / "run/checkpoint.safetensors").write_bytes(b"of value to someone")
    before = {p.name: p.read_bytes() for p in (files / "run").iterdir()}
    _bad_cube(files, "nan")
    assert train(files, "--overwrite") == 2
    assert {p.name: p.read_bytes() for p in (files / "run").iterdir()} == before


def test_a_bad_pixel_far_from_the_labels_is_found_before_training(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cube = np.random.default_rng(0).normal(size=(3, 150, 150))
    cube[0, 149, 149] = np.nan
    np.save(tmp_path / "cube.npy", cube)
    truth = np.zeros((150, 150), dtype=int)
    truth[3:9, 3:9] = 1
    np.save(tmp_path / "truth.npy", truth)
    assert train(tmp_path, "--budget", "5000") == 2
    assert "NaN or infinite" in " ".join(capsys.readouterr().err.split())
    assert not (tmp_path / "run").exists()


def test_maps_do_not_replace_what_is_there(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert train(files) == 0
    command = ["map", files / "run", files / "cube.npy", "--out"]
    assert run(*command, files / "run", "--overwrite") == 2
    assert "holds a training" in " ".join(capsys.readouterr().err.split())
    assert run(*command, files / "map") == 0
    assert run(*command, files / "map") == 2
    assert "holds a map already" in " ".join(capsys.readouterr().err.split())
    assert run(*command, files / "map", "--overwrite", "--threshold", 0.9) == 0
    found = np.load(files / "map/probability.npy") > 0.9
    np.testing.assert_array_equal(np.load(files / "map/map.npy"), found)


@pytest.mark.usefixtures("drawn")
def test_demo_writes_its_folder_and_prints_its_scores(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["demo", "--out", tmp_path / "demo", *QUICK]
    assert run(*command) == 0
    out = " ".join(capsys.readouterr().out.split())
    summary = json.loads((tmp_path / "demo/run.json").read_text("utf-8"))
    assert f"F1 {summary['scores']['f1']:.1f}" in out
    assert (summary["class"], summary["positives"]) == ("Corn-notill", 100)
    assert summary["config"]["unlabeled"] == 50
    assert Model.load(tmp_path / "demo/model.safetensors").training["unlabeled"] == 50
    assert {"overview.png", "curves.png"} <= {p.name for p in (tmp_path / "demo").iterdir()}
    report = json.loads((tmp_path / "demo/report.json").read_text("utf-8"))
    assert report["command"].startswith("thonecls demo --target 2 --seed 0")
    assert report["scores"] == summary["scores"]
    page = (tmp_path / "demo/report.html").read_text()
    assert "Against the truth" in page
    assert b64encode((tmp_path / "demo/overview.png").read_bytes()).decode() in page
    assert run("report", tmp_path / "demo") == 0  # anew, and the same
    assert (tmp_path / "demo/report.html").read_text() == page
    assert run(*command, "--target", 9, "--positives", 10) == 0  # again, a small class
    assert run(*command, "--target", 9) == 2
    assert "class 9 has 20 pixels" in " ".join(capsys.readouterr().err.split())
    assert run(*command, "--target", 17) == 2


def test_demo_does_not_replace_a_training(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert train(files) == 0
    assert run("demo", "--out", files / "run", *QUICK) == 2
    assert "a training of your own" in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize("json_flag", [[], ["--json"]])
def test_a_folder_in_the_way_is_an_error_not_a_traceback(
    files: Path, json_flag: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    (files / "run/model.safetensors").mkdir(parents=True)
    assert train(files, "--overwrite", *json_flag) == 2
    captured = capsys.readouterr()
    assert "cannot write to" in " ".join((captured.err + captured.out).split())
    assert "Traceback" not in captured.err


def test_info_shows_the_settings(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert train(files, "--order", "3") == 0
    capsys.readouterr()
    assert run("info", files / "run") == 0
    assert "order 3" in " ".join(capsys.readouterr().out.split())


def test_help_teaches(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--help") == 0
    top = capsys.readouterr().out
    assert all(name in top for name in ("demo", "train", "map", "info", "First steps"))
    assert run("train", "--help") == 0
    text = " ".join(capsys.readouterr().out.replace("│", " ").split())
    assert "Order of the Taylor expansion" in text
    assert "paper 300" in text


def test_ctrl_c_leaves_a_usable_model(files: Path) -> None:
    """The real program in its own process, stopped by a real signal in the middle of training."""
    command = [sys.executable, "-m", "thonecls.cli", "train", files / "cube.npy"]
    command += [files / "truth.npy", "--target", "1", "--out", files / "run"]
    command += ["--epochs", "1000000", "--settle", "0", *QUICK[2:]]
    process = subprocess.Popen(
        [str(c) for c in command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stderr is not None
    assert "Ctrl-C stops early" in process.stderr.readline()
    process.send_signal(signal.SIGINT)
    out, err = process.communicate()
    assert process.returncode == 130, (out, err)
    assert "stopping after this step" in err
    assert "the model and its map are usable" in out
    summary = json.loads((files / "run/run.json").read_text("utf-8"))
    assert not summary["finished"]
    assert (files / "run/checkpoint.safetensors").exists()
    model = Model.load(files / "run/model.safetensors")
    np.testing.assert_array_equal(
        model.score(np.load(files / "cube.npy")), np.load(files / "run/probability.npy")
    )


def test_an_unfinished_training_is_not_overwritten_by_accident(
    files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert train(files) == 0
    before = json.loads((files / "run/run.json").read_text("utf-8"))
    assert train(files, "--resume") == 0  # nothing left to do
    assert json.loads((files / "run/run.json").read_text("utf-8")) == before
    for change in (["--seed", "9"], ["--target", "2"], ["--order", "3"]):
        assert train(files, "--resume", *change) == 2
        assert "holds a training with other" in " ".join(capsys.readouterr().err.split())
    (files / "run/run.json").write_text("{half")
    assert train(files, "--resume") == 2
    assert "cannot read" in capsys.readouterr().err
    (files / "run/checkpoint.safetensors").write_bytes(b"half")
    assert train(files) == 2
    assert "--resume" in capsys.readouterr().err
    assert train(files, "--resume") == 2
    assert "damaged" in capsys.readouterr().err
    assert train(files, "--overwrite") == 0


@pytest.mark.parametrize("method", ["gce", "oc", "vpu", "pan"])
def test_another_method_writes_the_same_files(
    files: Path, capsys: pytest.CaptureFixture[str], method: str
) -> None:
    prior = ["--prior", "0.3"] if method == "oc" else []
    assert train(files, "--method", method, *prior, "--json") == 0
    summary = json.loads(capsys.readouterr().out)
    assert summary["method"] == method
    names = {p.name for p in (files / "run").iterdir()}
    assert {"model.safetensors", "probability.npy", "map.npy", "curves.png"} <= names
    found = np.load(files / "run/probability.npy")
    model = Model.load(files / "run/model.safetensors")
    np.testing.assert_array_equal(model.score(np.load(files / "cube.npy")), found)


def test_a_method_on_spectra_keeps_a_model_that_maps_other_scenes(
    files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["train", files / "cube.npy", files / "truth.npy", "--target", "1"]
    command += ["--out", files / "run", "--method"]
    assert run(*command, "matched-filter", "--epochs", "3") == 2
    assert "has no use for --epochs" in capsys.readouterr().err
    assert run(*command, "matched-filter", "--seeds", "3") == 2
    assert "has no use for several seeds: leave out --seeds" in capsys.readouterr().err
    assert run(*command, "matched-filter", "--unlabeled", "250") == 0
    names = {p.name for p in (files / "run").iterdir()}
    assert names == {
        "model.safetensors",
        "probability.npy",
        "novelty.npy",
        "map.npy",
        "overview.png",
        "evidence.npz",
        "report.html",
        "report.json",
        "run.json",
    }
    own = np.load(files / "run/probability.npy")
    assert np.isfinite(own).all()
    assert run("map", files / "run", files / "cube.npy", "--out", files / "again") == 0
    np.testing.assert_array_equal(np.load(files / "again/probability.npy"), own)
    capsys.readouterr()
    assert run("info", files / "run", "--json") == 0
    assert json.loads(capsys.readouterr().out)["config"]["method"] == "matched-filter"
    assert run(*command, "sam") == 2
    assert "holds a model or a map already" in capsys.readouterr().err


def test_a_method_on_spectra_that_needs_a_prior_keeps_it(
    files: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(SETTINGS, "epochs", 2)
    command = ["train", files / "cube.npy", files / "truth.npy", "--target", "1"]
    command += ["--folds", "0", "--unlabeled", "100", "--out", files / "run", "--method"]
    assert run(*command, "bce-spectra", "--prior", "0.3") == 2
    assert "bce-spectra has no use for --prior" in capsys.readouterr().err
    assert run(*command, "upu-spectra") == 2
    assert "upu-spectra needs the class prior" in capsys.readouterr().err
    assert run(*command, "upu-spectra", "--prior", "0.3") == 0
    own = np.load(files / "run/probability.npy")
    assert run("map", files / "run", files / "cube.npy", "--out", files / "again") == 0
    np.testing.assert_array_equal(np.load(files / "again/probability.npy"), own)
    told = json.loads((files / "run/run.json").read_text("utf-8"))
    assert "--unlabeled 100" in repeat_command(told)
    assert "--prior 0.3" in repeat_command(told)
    assert run(*command, "upu-spectra", "--estimate-prior", "bbe", "--overwrite") == 0
    told = json.loads((files / "run/run.json").read_text("utf-8"))
    assert 0 < told["config"]["prior"] < 1
    assert "--estimate-prior bbe" in repeat_command(told)
    assert "--prior" not in repeat_command(told).split()


def test_a_prior_is_asked_for_and_estimated(
    files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert train(files, "--method", "nnpu") == 2
    assert "needs the class prior" in capsys.readouterr().err
    assert train(files, "--method", "nnpu", "--estimate-prior", "bbe", "--json") == 0
    summary = json.loads(capsys.readouterr().out)
    assert 0 < summary["config"]["prior"] < 1
    both = ["--estimate-prior", "bbe", "--prior", "0.3", "--overwrite"]
    assert train(files, "--method", "nnpu", *both) == 2
    assert "a prior is given and to be estimated" in capsys.readouterr().err
    assert train(files, "--estimate-prior", "bbe", "--overwrite") == 2
    assert "t-honecls needs no class prior" in capsys.readouterr().err
    assert run("prior", files / "cube.npy", files / "truth.npy", "--target", 1, "--json") == 0
    priors = json.loads(capsys.readouterr().out)["priors"]
    assert set(priors) == {"km1", "km2", "bbe"}
    assert all(p["low"] <= p["value"] <= p["high"] or p["low"] < p["high"] for p in priors.values())
    assert run("prior", files / "cube.npy", files / "truth.npy", "--target", 1) == 0
    assert "km2" in capsys.readouterr().out


def test_methods_are_listed_and_an_unknown_one_is_refused(
    files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("methods") == 0
    assert "matched-filter" in capsys.readouterr().out
    assert run("methods", "--json") == 0
    cards = json.loads(capsys.readouterr().out)
    assert cards["nnpu"]["needs_prior"]
    assert train(files, "--method", "magic") == 2
    assert "there is no method 'magic'" in capsys.readouterr().err


def test_a_mistyped_method_is_answered_with_the_nearest(
    files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert train(files, "--method", "maxnt") == 2
    assert "there is no method 'maxnt', did you mean maxent?" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["train"], "thonecls train needs SCENE and LABELS: write thonecls train SCENE LABELS"),
        (["train", "a.tif"], "thonecls train needs SCENE and LABELS"),
        (["map"], "thonecls map needs MODEL and SCENES"),
        (["info"], "thonecls info needs PATH"),
        (["train", "a.tif", "b.gpkg", "--order"], "--order requires an argument"),
    ],
)
def test_a_command_without_its_files_says_what_it_needs(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(*words) == 2
    assert message in " ".join(capsys.readouterr().err.split())


def test_shells_complete_commands_and_options(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("SHELL", "/bin/bash")
    assert run("--install-completion") == 0
    assert "Completion script installed" in capsys.readouterr().out
    (script,) = tmp_path.rglob("completions/thonecls")
    text = script.read_text("utf-8")
    assert all(word in text for word in ("suggest", "--drop-bad-bands", "--scene-crs"))


@pytest.mark.learning
def test_a_map_that_says_nothing_is_named(
    files: Path, capsys: pytest.CaptureFixture[str], seed: int
) -> None:
    settings = ["--method", "nnpu", "--prior", "0.001", "--epochs", "20", "--rate", "0.02"]
    assert train(files, *settings, "--seed", seed, "--json") == 0
    assert "are not mapped" in json.loads(capsys.readouterr().out)["warning"]


def test_images_are_listed(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert run("datasets", "--data-root", tmp_path) == 0
    assert "cifar10" in capsys.readouterr().out
    assert run("datasets", "stl10", "--data-root", tmp_path) == 0
    shown = capsys.readouterr().out
    assert "not in" in shown
    assert "cat  (positive)" in shown
    assert run("datasets", "--data-root", tmp_path, "--json") == 0
    assert json.loads(capsys.readouterr().out)["stl10"]["images"] == 113_000
    assert run("datasets", "cifar10", "--json") == 0
    assert json.loads(capsys.readouterr().out)["cifar10"]["shape"] == [3, 32, 32]
    assert run("datasets", "cifar10", "--download") == 2
    assert "cannot be fetched" in capsys.readouterr().err
    assert run("methods", "--images", "--json") == 0
    assert set(json.loads(capsys.readouterr().out)) == set(IMAGE_METHODS)
    assert run("methods", "--images") == 0
    assert "p3mix-c" in capsys.readouterr().out


def test_a_reader_that_leaves_gets_no_traceback() -> None:
    """As `| head -c 1` does."""
    command = [sys.executable, "-m", "thonecls.cli", "methods", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 141
