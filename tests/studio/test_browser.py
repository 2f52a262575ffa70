"""The studio in a real browser: from the first click to an exported map, and what may go wrong."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np
import pytest
import rasterio
from numpy.typing import NDArray
from playwright.sync_api import Browser

from browsing import PAGE, Server, Studio, chromium, open_studio
from thonecls.datasets import write_example

SOURCES = Path(__file__).parents[2] / "studio"
AXE = SOURCES / "node_modules" / "axe-core" / "axe.min.js"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as found:
        yield found


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_example(tmp_path_factory.mktemp("example")).scene


@pytest.fixture(scope="module")
def truth(example: Path) -> NDArray[np.uint8]:
    with rasterio.open(example.with_name("truth.tif")) as file:
        found: NDArray[np.uint8] = file.read(1)
        return found


@pytest.fixture(scope="module")
def server(example: Path, browser: Browser) -> Iterator[Server]:
    found = Server(example, example.with_name("project"))
    found.start()
    yield found
    found.stop()


def places(truth: NDArray[np.uint8], number: int, count: int, seed: int) -> list[tuple[int, int]]:
    rng = np.random.default_rng(seed)
    chosen = rng.choice(np.flatnonzero(truth == number), count, replace=False)
    return [(int(flat) // truth.shape[1], int(flat) % truth.shape[1]) for flat in chosen]


def label(studio: Studio, pixels: list[tuple[int, int]]) -> None:
    for row, column in pixels:
        studio.click(row, column)
    studio.saved()


def test_the_page_is_built_from_its_source() -> None:
    names = ["index.html", "package-lock.json", "vite.config.js"]
    files = [SOURCES / name for name in names]
    files += [path for folder in ("public", "src") for path in (SOURCES / folder).rglob("*.*")]
    digest = hashlib.sha256()
    for path in sorted(files, key=lambda path: path.relative_to(SOURCES).as_posix()):
        digest.update(path.relative_to(SOURCES).as_posix().encode() + b"\0")
        digest.update(path.read_bytes() + b"\0")
    built = (PAGE / "built-from.txt").read_text("utf-8").strip()
    assert built == digest.hexdigest(), "the page is older than its source: run `make page`"


def test_from_a_click_to_an_exported_map(
    browser: Browser, server: Server, truth: NDArray[np.uint8], example: Path, tmp_path: Path
) -> None:
    studio = open_studio(browser, server.address)
    page = studio.page
    assert "scene.tif" in page.title()
    assert page.get_by_text("Click a few pixels of the class").is_visible()

    # By mouse: a few pixels, and a first map lies over the scene.
    studio.press("p")
    bare = studio.yellow()
    label(studio, places(truth, 1, 5, seed=0))
    assert studio.counts() == {"positive": 5, "negative": 0, "unknown": 0}
    page.get_by_role("button", name="First map").wait_for()
    studio.until("studio.store.state.layer === 'quick'")
    studio.until_yellow(bare + 0.01)
    page.locator("#auto").uncheck()  # so that there is one training, when it is asked for
    studio.until("!studio.store.state.settings.auto")

    # By keyboard alone: the cursor, a label "not this", and its undo.
    page.locator("#map").focus()
    studio.press("2", "ArrowLeft", "Shift+ArrowUp", "Space")
    studio.until("studio.store.state.labels.counts.negative === 1")
    studio.press("z")
    studio.until("studio.store.state.labels.counts.negative === 0")
    studio.press("y")
    studio.until("studio.store.state.labels.counts.negative === 1")
    studio.press("Control+z")
    studio.until("studio.store.state.labels.counts.negative === 0")
    studio.press("Escape", "1")

    # More labels, by the brush too; the map is learnt, and swaps in.
    label(studio, places(truth, 1, 7, seed=1))
    studio.press("b", "[", "[")
    x, y = studio.at(*places(truth, 1, 1, seed=2)[0])
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.up()
    studio.saved()
    assert studio.counts()["positive"] >= 11  # two may meet in one pixel
    studio.press("t")
    studio.until("studio.store.state.layer === 'run'")
    page.get_by_role("button", name="Learnt map").wait_for()

    # The cut: moved by its keys, the share falls, and the server knows.
    studio.until("Object.values(studio.store.state.cuts).some((cut) => cut.map.startsWith('run'))")
    before = studio.state("cuts[studio.store.state.maps.findLast((m) => m.kind === 'run').id]")
    page.locator("#cut").focus()
    studio.press(*["ArrowRight"] * 6)
    studio.until(
        f"studio.store.state.maps.findLast((m) => m.kind === 'run').cut !== {before['cut']}"
    )
    cut = studio.state("maps.findLast((m) => m.kind === 'run').cut")
    assert cut == pytest.approx(before["at"] / 200 + 0.03)
    share = before["share"][round(200 * cut)]
    assert share <= before["share"][before["at"]]

    # Where to look next: one key flies there, one key answers.
    studio.press("n")
    studio.until("studio.store.state.current !== null")
    known = sum(studio.counts().values())
    point = studio.state("suggestions.points.find((p) => p.id === studio.store.state.current)")
    studio.press("1" if truth[point["row"], point["column"]] == 1 else "2")
    studio.until(f"studio.store.state.current !== {point['id']}")
    studio.saved()
    assert sum(studio.counts().values()) == known + 1

    # A reload loses nothing.
    counts = studio.counts()
    page.reload()
    studio.ready()
    assert studio.counts() == counts
    assert studio.state("layer") == "run"

    # Export at the cut that was chosen; rasterio opens it.
    studio.press("x", "x")
    studio.until("studio.store.state.export.ready && !studio.store.state.export.stale")
    made_of = studio.state("export")
    assert "thonecls train" in page.locator("#command").inner_text()
    with page.expect_download() as download:
        page.get_by_role("link", name="map.tif", exact=True).click()
    path = tmp_path / "map.tif"
    download.value.save_as(path)
    with rasterio.open(path) as made, rasterio.open(example) as scene:
        assert (made.crs, made.transform, made.shape) == (scene.crs, scene.transform, scene.shape)
        mapped = made.read(1)
    cuts = page.evaluate(
        "async (id) => (await fetch(`/api/cut/${id}`, {headers: {'X-Thonecls-Token':"
        " new URLSearchParams(location.search).get('token')}})).json()",
        made_of["map"],
    )
    found = (mapped == 1).sum() / (mapped != 255).sum()
    assert found == pytest.approx(cuts["share"][round(200 * made_of["cut"])], abs=0.001)

    origin = urlsplit(server.address).netloc
    assert {urlsplit(url).netloc for url in studio.asked} == {origin}
    assert studio.errors == []
    page.close()


def test_two_tabs_show_the_same_labels(
    browser: Browser, server: Server, truth: NDArray[np.uint8]
) -> None:
    one, two = (open_studio(browser, server.address) for _ in range(2))
    before = one.counts()["negative"]
    one.press("p", "2")
    label(one, places(truth, 3, 2, seed=5))
    two.until(f"studio.store.state.labels.counts.negative === {before + 2}")
    two.press("z")
    total = "Object.values(studio.store.state.labels.counts).reduce((a, b) => a + b, 0)"
    for studio in (one, two):  # each hears of it in its own time: counts first, pixels then
        studio.until(f"studio.store.state.labels.counts.negative === {before + 1}")
        studio.until(f"studio.store.state.pixels.size === {total}")
    assert one.state("pixels.size") == two.state("pixels.size") == sum(one.counts().values())
    for studio in (one, two):
        assert studio.errors == []
        studio.page.close()


# Once all tiles are there and drawn.
DRAWN = """() => new Promise((done) => {
  studio.sceneMap.map.once("rendercomplete", done);
  studio.sceneMap.map.render();
})"""


def test_both_sides_of_a_swipe_are_tinted_alike(
    browser: Browser, server: Server, truth: NDArray[np.uint8]
) -> None:
    studio = open_studio(browser, server.address)
    studio.press("p", "1")
    label(studio, places(truth, 1, 1, seed=7))
    studio.until("studio.store.state.maps.some((map) => map.kind === 'quick')")
    pictures = []
    for swipe in ("null", "{ at: 0.5, left: 'quick' }"):
        studio.page.evaluate(f"() => studio.store.set({{ layer: 'quick', swipe: {swipe} }})")
        studio.until(f"studio.sceneMap.left.getVisible() === {str(swipe != 'null').lower()}")
        studio.page.evaluate(DRAWN)
        pictures.append(studio.picture().astype(int)[100:-60])
    half, handle = pictures[0].shape[1] // 2, 40
    apart = np.abs(pictures[0] - pictures[1]).max(axis=2) > 3
    for side in (apart[:, : half - handle], apart[:, half + handle :]):
        assert side.mean() < 0.01
    studio.press("z")
    assert studio.errors == []
    studio.page.close()


def test_a_finger_labels_and_two_move_the_map(
    browser: Browser, server: Server, truth: NDArray[np.uint8]
) -> None:
    size = {"width": 800, "height": 1000}
    studio = open_studio(browser, server.address, viewport=size, has_touch=True)
    before = studio.counts()["unknown"]
    studio.page.get_by_role("button", name="Don't know").tap()
    for row, column in places(truth, 2, 2, seed=6):
        studio.page.touchscreen.tap(*studio.at(row, column))
    studio.until(f"studio.store.state.labels.counts.unknown === {before + 2}")

    # A stroke of the brush is given up when a second finger comes down, and the map zooms.
    studio.press("b")
    fingers = studio.page.context.new_cdp_session(studio.page)
    x, y = studio.at(40, 40)

    def touch(kind: str, *points: tuple[float, float]) -> None:
        found = [{"x": at[0], "y": at[1], "id": i} for i, at in enumerate(points)]
        fingers.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": found})

    resolution = studio.page.evaluate("studio.sceneMap.resolution")
    touch("touchStart", (x, y))
    touch("touchMove", (x + 5, y + 5))
    touch("touchStart", (x + 5, y + 5), (x + 60, y + 60))
    for step in range(10, 60, 10):
        touch("touchMove", (x - step, y - step), (x + 60 + step, y + 60 + step))
    touch("touchEnd")
    studio.until(f"studio.sceneMap.resolution < {0.8 * resolution}")
    assert studio.counts()["unknown"] == before + 2
    studio.press("z", "z")
    studio.until(f"studio.store.state.labels.counts.unknown === {before}")
    assert studio.errors == []
    studio.page.close()


def test_verification_is_blind(browser: Browser, server: Server, truth: NDArray[np.uint8]) -> None:
    studio = open_studio(browser, server.address)
    page = studio.page
    if not page.evaluate("studio.store.state.maps.some((map) => map.kind === 'run')"):
        studio.press("p", "1")  # no other test of this process has learnt a map
        label(studio, places(truth, 1, 12, seed=1))
        studio.press("t")
    studio.until("studio.store.state.layer === 'run'")
    studio.press("r")
    page.locator("#sample-size").select_option("30")
    page.get_by_role("button", name="Begin").click()
    studio.until("studio.store.state.verification.state === 'asking'")
    studio.until("!studio.sceneMap.right.getVisible()")
    assert page.get_by_text("The map is hidden").first.is_visible()
    assert page.locator("#share").is_hidden()
    studio.press("h", "m")
    assert not page.evaluate("studio.sceneMap.right.getVisible()")
    studio.press("n")
    for answered, key in enumerate("123", 1):
        studio.press(key)
        studio.until(f"studio.store.state.verification.answered === {answered}")
    page.reload()
    studio.ready()
    assert studio.state("verification.answered") == 3
    studio.press("q")
    studio.until("studio.sceneMap.right.getVisible()")
    assert studio.errors == []
    page.close()


def test_nothing_is_lost_when_the_server_is_killed_in_training(
    browser: Browser, example: Path, truth: NDArray[np.uint8], tmp_path: Path
) -> None:
    server = Server(example, tmp_path / "project")
    server.start()
    try:
        studio = open_studio(browser, server.address)
        page = studio.page
        studio.press("p")
        label(studio, places(truth, 1, 12, seed=3))
        page.locator("#method").select_option("t-honecls")  # which takes long enough
        page.locator("#method").blur()
        studio.until("studio.store.state.settings.method === 't-honecls'")
        studio.press("t")
        studio.until("/epoch/.test(studio.store.state.jobs.train?.words)")
        server.kill()
        page.get_by_text("The server is gone").wait_for()
        row, column = places(truth, 3, 1, seed=4)[0]
        studio.press("2")
        studio.click(row, column)
        page.get_by_text("1 stroke waits for the server").wait_for()
        address = server.address
        server.start()
        assert server.address == address
        page.get_by_text("The server is gone").wait_for(state="hidden")
        studio.until("studio.store.state.labels.counts.negative === 1")
        assert studio.counts()["positive"] == 12
        page.get_by_text("Saved", exact=True).wait_for()

        # The training lives, and goes on; what runs can be stopped, and then it is over.
        studio.until("/epoch/.test(studio.store.state.jobs.train?.words)")
        assert studio.state("jobs.train.id") == "train-1"
        page.get_by_role("button", name="Stop").click()
        studio.until("studio.store.state.jobs.train?.state === 'cancelled'")
        page.get_by_text("Stopped. The map is as it was.").wait_for()
        studio.until("studio.store.state.layer === 'quick'")
        assert not [error for error in studio.errors if "ERR_" not in error]
    finally:
        server.stop()


def test_an_address_without_its_key_says_what_to_do(browser: Browser, server: Server) -> None:
    page = browser.new_page()
    page.goto(server.address.split("?")[0])
    page.get_by_text("This address has no valid key").wait_for()
    page.close()


def axe() -> str:
    if not AXE.exists():
        if "axe-core" in os.environ.get("THONECLS_REQUIRE", "").split():
            pytest.fail("axe-core is required, but not installed: npm ci --prefix studio")
        pytest.skip("axe-core is not installed: npm ci --prefix studio")
    return AXE.read_text("utf-8")


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing_serious(browser: Browser, server: Server, theme: str) -> None:
    code = axe()
    size = {"width": 1280, "height": 800} if theme == "light" else {"width": 800, "height": 1000}
    studio = open_studio(browser, server.address, color_scheme=theme, viewport=size)
    page = studio.page
    page.evaluate(code)
    found = {}
    for name, key, part in (
        *(("map", "q", "#panel-map"), ("next", "n", "#panel-next")),
        *(("verify", "r", "#panel-verify"), ("export", "x", "#panel-export")),
        *(("bands", "c", "#display-panel"), ("keys", "?", "#keys")),
    ):
        studio.press(key)
        page.locator(part).wait_for()
        result = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
        for finding in result["violations"]:
            if finding["impact"] in ("serious", "critical"):
                where = [node["target"] for node in finding["nodes"]]
                found[f"{name}: {finding['id']}"] = where
    assert found == {}
    page.close()
