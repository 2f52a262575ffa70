"""The pictures of docs/qgis.md, made by using the plugin in QGIS on Indian Pines.

    xvfb-run -s "-screen 0 1280x800x24" python tests/qgis/pictures.py docs/figures

Needs QGIS and a screen. The scene is laid at about its place, in Indiana.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import geopandas
import numpy as np
import rasterio
from affine import Affine
from PIL import Image

from thonecls.datasets import load_dataset

HERE = Path(__file__).parent
PLUGIN = HERE.parents[1] / "qgis" / "thonecls_qgis"
CLASS, LABELS = 2, 100  # corn-notill
CRS, PLACE = "EPSG:32616", Affine(20, 0, 503_000, 0, -20, 4_480_000)


def write_files(folder: Path) -> None:
    """indian-pines.tif, and corn.gpkg with points in pixels of the class."""
    data = load_dataset("indian-pines")
    bands, height, width = data.scene.cube.shape
    with rasterio.open(
        folder / "indian-pines.tif", "w", driver="GTiff", height=height, width=width, count=bands,
        dtype="float32", crs=CRS, transform=PLACE,
    ) as file:  # fmt: skip
        file.write(data.scene.cube.astype(np.float32))
    found = np.flatnonzero(data.truth == CLASS)
    rows, columns = np.divmod(np.random.default_rng(0).choice(found, LABELS), width)
    x, y = PLACE.c + PLACE.a * (columns + 0.5), PLACE.f + PLACE.e * (rows + 0.5)
    points = geopandas.GeoDataFrame(
        {"crop": ["corn"] * LABELS}, geometry=geopandas.points_from_xy(x, y), crs=CRS
    )
    points.to_file(folder / "corn.gpkg", driver="GPKG")


def main(target: Path) -> None:
    """Make the pictures in a folder."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_files(folder)
        profile = folder / "profiles" / "default"
        shutil.copytree(PLUGIN, profile / "python" / "plugins" / PLUGIN.name)
        (profile / "QGIS").mkdir()
        (profile / "QGIS" / "QGIS3.ini").write_text(
            f"[PythonPlugins]\n{PLUGIN.name}=true\n[app]\nprojections\\unknownCrsBehavior=NoAction\n"
        )
        given = {n: v for n, v in os.environ.items() if not n.startswith("PYTHON")}
        given |= {
            "QGIS_CUSTOM_CONFIG_PATH": name,
            "THONECLS_PYTHON": sys.executable,
            "PICTURES": name,
        }
        program = shutil.which("qgis.bin") or "qgis"
        words = [program, "--nologo", "--noversioncheck", "--code", str(HERE / "in_window.py")]
        subprocess.run(words, env=given, check=True, timeout=600)
        for shot in sorted(folder.glob("qgis*.png")):
            image = Image.open(shot).convert("RGB").quantize(128, dither=Image.Dither.NONE)
            image.save(target / shot.name, optimize=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
