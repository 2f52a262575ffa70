"""The pictures of docs/studio.md, made by using the studio on Indian Pines.

They are made where THONECLS_PICTURES names a folder:
`THONECLS_PICTURES=docs/figures/studio pytest tests/studio/test_browser_pictures.py`.
"""

from __future__ import annotations

import io
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from browsing import Server, Studio, chromium, open_studio
from thonecls.datasets import load_dataset

CLASS = 2  # corn-notill
SIZE = {"width": 1280, "height": 800}
FOLDER = os.environ.get("THONECLS_PICTURES")


def save(studio: Studio, path: Path) -> None:
    """A picture of the page, in 255 colours: small enough to be kept."""
    studio.page.wait_for_timeout(700)
    shot = Image.open(io.BytesIO(studio.page.screenshot())).convert("RGB")
    shot.quantize(255, dither=Image.Dither.NONE).save(path, optimize=True)


class Film:
    """Pictures one after the other, each shown for some milliseconds."""

    def __init__(self, studio: Studio, width: int) -> None:
        self.studio, self.width = studio, width
        self.frames: list[Image.Image] = []
        self.times: list[int] = []

    def shoot(self, milliseconds: int, rest: int = 350) -> None:
        self.studio.page.wait_for_timeout(rest)
        shot = Image.open(io.BytesIO(self.studio.page.screenshot())).convert("RGB")
        height = round(shot.height * self.width / shot.width)
        self.frames.append(shot.resize((self.width, height), Image.Resampling.LANCZOS))
        self.times.append(milliseconds)

    def save(self, path: Path) -> None:
        first, *others = self.frames
        first.save(
            path,
            save_all=True,
            append_images=others,
            duration=self.times,
            loop=0,
            quality=60,
            method=6,
            minimize_size=True,
        )


@pytest.mark.skipif(FOLDER is None, reason="THONECLS_PICTURES names no folder")
def test_pictures(tmp_path: Path) -> None:
    folder = Path(FOLDER or ".")
    folder.mkdir(parents=True, exist_ok=True)
    truth = load_dataset("indian-pines").truth
    rng = np.random.default_rng(3)
    chosen = rng.choice(np.flatnonzero(truth == CLASS), 16, replace=False)
    pixels = [(int(flat) // truth.shape[1], int(flat) % truth.shape[1]) for flat in chosen]
    server = Server(None, tmp_path)
    server.start()
    try:
        with chromium() as browser:
            studio = open_studio(browser, server.address, viewport=SIZE)
            walk(studio, folder, pixels, lambda row, column: bool(truth[row, column] == CLASS))
            dark = open_studio(
                browser,
                server.address,
                viewport={"width": 800, "height": 1000},
                color_scheme="dark",
            )
            dark.until("studio.store.state.layer === 'run'")
            dark.page.locator("#map").hover(position={"x": 300, "y": 250})
            save(dark, folder / "narrow.png")
            server.kill()
            studio.page.get_by_text("The server is gone").wait_for()
            save(studio, folder / "gone.png")
    finally:
        server.stop()


def walk(
    studio: Studio,
    folder: Path,
    pixels: list[tuple[int, int]],
    known: Callable[[int, int], bool],
) -> None:
    """Use the studio as its users do, and take pictures on the way."""
    film = Film(studio, 960)
    page = studio.page
    film.shoot(1500)
    studio.press("p")
    for row, column in pixels[:3]:
        studio.click(row, column)
        studio.saved()
        film.shoot(400, 100)
    studio.until("studio.store.state.layer === 'quick'")
    studio.until("Object.keys(studio.store.state.cuts).length > 0")
    film.shoot(1500, 900)
    for row, column in pixels[3:]:
        studio.click(row, column)
        studio.saved()
    film.shoot(700)
    studio.until("studio.store.state.jobs.train?.state === 'running'")
    film.shoot(700, 600)
    studio.until("studio.store.state.layer === 'run'")
    studio.until(
        "studio.store.state.cuts[studio.store.state.maps.findLast(m => m.kind === 'run').id]"
    )
    page.mouse.move(*studio.at(70, 70))
    save(studio, folder / "learnt.png")
    film.shoot(1500)
    for key in ("Shift+.", "Shift+.", "Shift+,", "Shift+,", "Shift+,", "Shift+."):
        studio.press(key)
        film.shoot(300, 150)
    studio.press("w")
    film.shoot(1200)
    save(studio, folder / "swipe.png")
    studio.press("w", "n")
    studio.until("studio.store.state.current !== null")
    page.mouse.move(640, 20)
    save(studio, folder / "next.png")
    film.shoot(900)
    for _ in range(10):
        point = studio.state("suggestions.points.find((p) => p.id === studio.store.state.current)")
        studio.press("1" if known(point["row"], point["column"]) else "2")
        studio.saved()
        film.shoot(350, 550)
    studio.press("q", "f")
    studio.until("studio.store.state.jobs.train?.state === 'running'")
    film.shoot(700, 900)
    studio.until("studio.store.state.jobs.train?.state !== 'running'")
    studio.until(
        "studio.store.state.cuts[studio.store.state.maps.findLast(m => m.kind === 'run').id]"
    )
    film.shoot(1500, 900)
    studio.press("r")
    page.locator("#sample-size").select_option("30")
    page.get_by_role("button", name="Begin").click()
    studio.until("studio.store.state.verification.state === 'asking'")
    studio.press("n")
    for answered in range(1, 31):
        if answered == 12:
            save(studio, folder / "verify.png")
        here = "verification.points.find((p) => p.id === studio.store.state.current)"
        point = studio.state(here)
        studio.press("1" if known(point["row"], point["column"]) else "2")
        studio.until(f"studio.store.state.verification.answered === {answered}")
    studio.press("f")
    save(studio, folder / "verified.png")
    studio.press("x")
    if not studio.state("export.ready"):
        studio.press("x")
    studio.until("studio.store.state.export.ready && !studio.store.state.export.stale")
    film.shoot(2500)
    save(studio, folder / "export.png")
    film.save(folder / "loop.webp")
