"""The studio as a user has it: a server in a process of its own, and Chromium."""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image
from playwright.sync_api import Browser, ConsoleMessage, Page, sync_playwright

import thonecls.studio
from commands import program

PAGE = Path(thonecls.studio.__file__).parent / "page"
PATIENCE = 120.0  # seconds, for a machine that has other things to do
# Root may have no sandbox; WebGL is drawn by software; nothing is fetched.
FLAGS = (
    *("--no-sandbox", "--no-first-run", "--disable-background-networking", "--disable-quic"),
    *("--disable-component-update", "--disable-sync", "--ignore-gpu-blocklist"),
    *("--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader"),
    "--disable-gpu-compositing",  # of the page itself, which software does faster without
)
YELLOW = (255, 214, 10)  # of the map over the scene


@contextmanager
def chromium() -> Iterator[Browser]:
    """A browser without a window; skips where there is none, or no built page."""
    path = program("chromium", "chromium-browser", "google-chrome")
    if not (PAGE / "index.html").exists():
        required = "chromium" in os.environ.get("THONECLS_REQUIRE", "").split()
        (pytest.fail if required else pytest.skip)("the page is not built: `make page`")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=list(FLAGS))
        try:
            yield browser
        finally:
            browser.close()


@dataclass
class Server:
    """`thonecls studio` on a scene, with its project in a folder; can be killed and started.

    scene: None for the example that comes with it, whose project is then inside of the folder.
    """

    scene: Path | None
    folder: Path
    process: subprocess.Popen[str] | None = None
    address: str = ""

    def start(self) -> None:
        command = [sys.executable, "-m", "thonecls.cli", "studio", "--no-open"]
        if self.scene is not None:
            command += [str(self.scene), "--project", str(self.folder)]
        self.process = subprocess.Popen(
            command,
            cwd=self.folder.parent if self.scene else self.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={**os.environ, "OMP_NUM_THREADS": "1", "COLUMNS": "400"},
        )
        assert self.process.stdout is not None
        said = ""
        for line in self.process.stdout:
            said += line
            if found := re.search(r"http://\S+", line):
                self.address = found[0]
                return
        raise AssertionError(f"the studio did not start: {said}")

    def kill(self) -> None:
        """End it without a word, as a power cut would."""
        if self.process is not None:
            self.process.kill()
            self.stop()

    def stop(self) -> None:
        if self.process is not None:
            self.process.terminate()
            self.process.wait(20)
            assert self.process.stdout is not None
            self.process.stdout.close()
            self.process = None


@dataclass
class Studio:
    """A page that is open; what it complained of and what it asked for."""

    page: Page
    address: str
    errors: list[str] = field(default_factory=list)
    asked: set[str] = field(default_factory=set)

    def open(self) -> None:
        self.page.goto(self.address)
        self.ready()

    def ready(self) -> None:
        self.page.locator("#curtain").wait_for(state="hidden", timeout=1000 * PATIENCE)
        self.until("globalThis.studio && studio.store.state.labels")

    def until(self, expression: str, seconds: float = PATIENCE) -> Any:
        """Wait until an expression is true; by asking, for the page allows no eval of its own."""
        end = time.monotonic() + seconds
        while not (found := self.page.evaluate(f"() => {expression}")):
            assert time.monotonic() < end, f"not within {seconds} s: {expression}"
            self.page.wait_for_timeout(50)
        return found

    def state(self, expression: str) -> Any:
        return self.page.evaluate(f"() => studio.store.state.{expression}")

    def at(self, row: int, column: int) -> tuple[float, float]:
        """Where a pixel of the scene is on the screen."""
        place = "([row, column]) => studio.sceneMap.map.getPixelFromCoordinate([column, row])"
        x, y = self.page.evaluate(place, [-row - 0.5, column + 0.5])
        box = self.page.locator("#map").bounding_box()
        assert box is not None
        return box["x"] + x, box["y"] + y

    def click(self, row: int, column: int) -> None:
        self.page.mouse.click(*self.at(row, column))

    def press(self, *keys: str) -> None:
        for key in keys:
            self.page.keyboard.press(key)

    def counts(self) -> dict[str, int]:
        found: dict[str, int] = self.state("labels.counts")
        return found

    def saved(self) -> None:
        self.until("studio.store.state.pending === 0")

    def picture(self) -> NDArray[np.uint8]:
        """The map as it is on the screen, (height, width, 3)."""
        shot = self.page.locator("#map").screenshot()
        return np.asarray(Image.open(io.BytesIO(shot)).convert("RGB"))

    def until_yellow(self, share: float) -> None:
        """Wait until at least this share of the map is tinted as the class."""
        end = time.monotonic() + PATIENCE
        while (found := self.yellow()) < share:
            assert time.monotonic() < end, f"{found:.3f} of the map is tinted, not {share:.3f}"

    def yellow(self) -> float:
        """The share of the map's picture that is tinted as the class."""
        red, green, blue = np.moveaxis(self.picture().astype(int), 2, 0)
        return float(((red - blue > 70) & (green - blue > 50)).mean())


def open_studio(browser: Browser, address: str, **options: Any) -> Studio:
    """Open the page; what goes wrong in it is kept."""
    options = {"viewport": {"width": 1100, "height": 700}, **options}
    page = browser.new_page(**options)
    page.set_default_timeout(1000 * PATIENCE)
    studio = Studio(page, address)
    page.on("pageerror", lambda error: studio.errors.append(str(error)))
    page.on("console", lambda said: _hear(studio, said))
    page.on("request", lambda request: studio.asked.add(request.url))
    studio.open()
    return studio


def _hear(studio: Studio, said: ConsoleMessage) -> None:
    """Keep errors, but for tiles of a map that has gone meanwhile."""
    if said.type == "error" and "404" not in said.text:
        studio.errors.append(said.text)
