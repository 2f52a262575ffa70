"""The studio over HTTP: see studio/API.md for what each address takes and gives."""

from __future__ import annotations

import logging
import re
from collections.abc import Awaitable, Callable
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

from fastapi import Body, FastAPI, Header, Query, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse, JSONResponse, PlainTextResponse, Response
from fastapi.responses import StreamingResponse as Stream
from starlette.exceptions import HTTPException

from thonecls.errors import ConfigError, ThoneclsError
from thonecls.studio.events import encode
from thonecls.studio.guard import Guard
from thonecls.studio.messages import (
    Answered,
    Cancel,
    Changes,
    Cut,
    Export,
    Pixel,
    Size,
    Stroke,
    Training,
)
from thonecls.studio.refusals import ConflictError, NothingThereError, NotReadyError
from thonecls.studio.session import Studio
from thonecls.studio.strokes import brush_pixels, lasso_pixels, listed_pixels

PAGE = Path(__file__).parent / "page"
NO_PAGE = (
    "The page is not built: run `make page` in the sources of thonecls (it needs npm), then reload."
)
TYPES = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".ico": "image/x-icon",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".map": "application/json",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
    ".wasm": "application/wasm",
    ".webmanifest": "application/manifest+json",
    ".woff2": "font/woff2",
}
REPORT_POLICY = (
    "default-src 'none'; img-src data:; style-src 'unsafe-inline'; font-src data:; sandbox"
)
POINTS, PLACES = 60, 10  # of them, unless told
log = logging.getLogger(__name__)

By = Annotated[str | None, Header(alias="X-Thonecls-Client", max_length=100)]
Version = Annotated[str | None, Query(alias="v", max_length=100)]


# Where the framework refuses by itself.
WORDS = {
    400: "the message is not JSON in UTF-8: send it as studio/API.md tells",
    405: "this address is not asked in that way: see studio/API.md",
}


def create_app(studio: Studio, *, token: str, hosts: set[str] | None) -> FastAPI:
    """The application; hosts: what `Host` may say, None for anything."""
    app = FastAPI(title="thonecls studio", docs_url=None, redoc_url=None, openapi_url=None)
    _add_refusals(app)
    _add_looking(app, studio)
    _add_labels(app, studio)
    _add_maps(app, studio)
    _add_questions(app, studio)
    _add_export(app, studio)
    _add_page(app)
    app.add_middleware(Guard, token=token, hosts=hosts)
    return app


def _add_refusals(app: FastAPI) -> None:
    """Every error as JSON, in the library's own words."""

    def refuse(status: int) -> Callable[[Request, Exception], Awaitable[Response]]:
        async def answer(request: Request, error: Exception) -> Response:
            return _error(status, " ".join(str(error).split()))

        return answer

    kinds: dict[type[Exception], int] = {
        ThoneclsError: 400,
        NothingThereError: 404,
        ConflictError: 409,
        NotReadyError: 503,
    }
    for kind, status in kinds.items():
        app.add_exception_handler(kind, refuse(status))

    async def wrong(request: Request, error: Exception) -> Response:
        assert isinstance(error, RequestValidationError)
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"][1:]) or str(first["loc"][0])
        return _error(422, f"'{where[:100]}' is not as it must be: {first['msg'][:300]}")

    async def http(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        return _error(error.status_code, WORDS.get(error.status_code, str(error.detail)))

    async def unexpected(request: Request, error: Exception) -> Response:
        log.error("%s %s", request.method, request.url.path, exc_info=error)
        return _error(500, f"something unexpected happened ({type(error).__name__}: {error})")

    app.add_exception_handler(RequestValidationError, wrong)
    app.add_exception_handler(HTTPException, http)
    app.add_exception_handler(Exception, unexpected)


def _error(status: int, words: str) -> Response:
    return JSONResponse({"error": words}, status)


def _kept(version: str | None) -> dict[str, str]:
    """How long a tile may be kept: for ever where its address tells the server's start."""
    for_ever = "private, max-age=31536000, immutable"
    return {"Cache-Control": for_ever if version else "no-store"}


def _add_looking(app: FastAPI, studio: Studio) -> None:
    @app.get("/api/state")
    def state() -> Any:
        return studio.state()

    @app.get("/api/events")
    async def events() -> Response:
        first = encode("hello", {"server": studio.server, "revision": studio.labels.revision})
        headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        return Stream(studio.events.listen(first), media_type="text/event-stream", headers=headers)

    @app.get("/api/tiles/scene/{z}/{x}/{y}")
    def scene_tile(
        z: int,
        x: int,
        y: int,
        bands: Annotated[str | None, Query(max_length=40)] = None,
        preset: Annotated[str | None, Query(max_length=40)] = None,
        clip: float = 2.0,
        v: Version = None,
    ) -> Response:
        if (bands is None) == (preset is None):
            raise ConfigError("say which bands, or which preset: one of the two")
        numbers = None if bands is None else _numbers(bands)
        png = studio.pictures.tile(z, x, y, numbers, preset, clip)
        return Response(png, media_type="image/png", headers=_kept(v))

    @app.get("/api/tiles/map/{name}/{z}/{x}/{y}")
    def map_tile(name: str, z: int, x: int, y: int, v: Version = None) -> Response:
        studio.find_map(name)
        octets = studio.maps.tile(name, z, x, y)
        if octets is None:
            raise NothingThereError(f"there is no map {name[:60]!r}: ask for the state again")
        return Response(octets, media_type="application/octet-stream", headers=_kept(v))

    @app.get("/api/spectrum")
    def spectrum(row: int, column: int) -> Any:
        values, valid = studio.view.spectrum(row, column)
        a, b, c, d, e, f = studio.grid.transform[:6]
        x, y = column + 0.5, row + 0.5
        known = studio.grid.georeferenced
        return {
            "row": row,
            "column": column,
            "values": values,
            "label": studio.labels.kind_of(row * studio.grid.shape[1] + column),
            "valid": valid,
            "xy": [a * x + b * y + c, d * x + e * y + f] if known else None,
        }

    @app.get("/api/envelope")
    def envelope() -> Any:
        return studio.envelope()

    @app.post("/api/similar")
    def similar(pixel: Pixel, by: By = None) -> Any:
        studio.view.check_pixel(pixel.row, pixel.column)
        return {"map": studio.similar(pixel.row, pixel.column, by)}

    @app.delete("/api/similar")
    def no_similar(by: By = None) -> Any:
        if studio.maps.drop("similar"):
            studio.tell_maps(by)
        return studio.maps_state()


def _numbers(text: str) -> list[int]:
    """Band numbers of a tile's address."""
    if not re.fullmatch(r"\d{1,5}(,\d{1,5}){0,2}", text, re.ASCII):
        raise ConfigError(f"'bands' must be 1 or 3 numbers, such as 30,20,10. Got {text!r} instead")
    return [int(part) for part in text.split(",")]


def _add_labels(app: FastAPI, studio: Studio) -> None:
    @app.get("/api/labels")
    def labels() -> Any:
        kinds = ("positive", "negative", "unknown")
        revision = studio.labels.revision
        return {"revision": revision} | {k: studio.labels.pixels(k).tolist() for k in kinds}

    @app.post("/api/strokes")
    def strokes(stroke: Stroke, by: By = None) -> Any:
        shape = studio.grid.shape
        given = [n for n in ("pixels", "polygon", "path") if getattr(stroke, n) is not None]
        if len(given) != 1:
            raise ConfigError("a stroke has pixels, a polygon or a path: say one of the three")
        if (stroke.path is None) != (stroke.radius is None):
            raise ConfigError("a path has a radius, and nothing else has: say both or neither")
        if stroke.path is not None and stroke.radius is not None:
            tool = "brush"
            pixels = brush_pixels([(x, y) for x, y in stroke.path], stroke.radius, shape)
        elif stroke.polygon is not None:
            tool, pixels = "lasso", lasso_pixels([(x, y) for x, y in stroke.polygon], shape)
        else:
            tool = "answer" if stroke.origin == "suggestion" else "click"
            pixels = listed_pixels([(r, c) for r, c in stroke.pixels or ()], shape)
        many = "1 pixel" if len(pixels) == 1 else f"{len(pixels):,} pixels"
        named = {"negative": "not this", "unknown": "don't know", "erase": "erase"}
        words = ", ".join([tool, *filter(None, [named.get(stroke.kind)]), many])
        return studio.stroke(stroke.kind, pixels, words, stroke.origin, by)

    @app.post("/api/undo")
    def undo(by: By = None) -> Any:
        return studio.step_back(by)

    @app.post("/api/redo")
    def redo(by: By = None) -> Any:
        return studio.step_forth(by)


def _add_maps(app: FastAPI, studio: Studio) -> None:
    @app.get("/api/cut/{name}")
    def cut(name: str) -> Any:
        return studio.cut_curve(name)

    @app.put("/api/cut/{name}")
    def set_cut(name: str, cut: Cut, by: By = None) -> Any:
        return studio.set_cut(name, cut.cut, by)

    @app.put("/api/settings")
    def settings(changes: Changes) -> Any:
        given = changes.model_dump(exclude_unset=True)
        return studio.change_settings({k: v for k, v in given.items() if v is not None})

    @app.post("/api/train", status_code=202)
    def train(training: Annotated[Training | None, Body()] = None) -> Any:
        asked = training or Training()
        return asdict(studio.training.begin(asked.method, asked.preset, asked.coverage))

    @app.post("/api/jobs/{name}/cancel")
    def cancel(name: str, how: Annotated[Cancel | None, Body()] = None) -> Any:
        job = studio.jobs.cancel(name, keep=(how or Cancel()).keep)
        if job is None:
            raise NothingThereError(f"there is no job {name[:60]!r}: ask for the state again")
        return asdict(job)


def _add_questions(app: FastAPI, studio: Studio) -> None:
    @app.get("/api/suggestions")
    def suggestions() -> Any:
        return studio.asking.suggestions()

    @app.post("/api/suggestions")
    def suggest(size: Annotated[Size | None, Body()] = None) -> Any:
        return studio.asking.suggest((size or Size()).size or PLACES)

    @app.get("/api/verification")
    def verification() -> Any:
        return studio.asking.verification()

    @app.post("/api/verification")
    def draw(response: Response, size: Annotated[Size | None, Body()] = None) -> Any:
        told = studio.asking.draw((size or Size()).size or POINTS)
        response.status_code = 202 if told["state"] == "preparing" else 200
        return told

    @app.put("/api/verification/{number}")
    def answer(number: int, said: Answered) -> Any:
        return studio.asking.answer(number, said.answer)

    @app.delete("/api/verification")
    def end() -> Any:
        return studio.asking.end()


def _add_export(app: FastAPI, studio: Studio) -> None:
    @app.get("/api/export")
    def exported() -> Any:
        return studio.exporting.state()

    @app.post("/api/export", status_code=202)
    def export(which: Annotated[Export | None, Body()] = None) -> Any:
        return asdict(studio.exporting.begin((which or Export()).map))

    @app.get("/api/export/{name}")
    def download(name: str) -> Response:
        path = studio.exporting.path_of(name)
        if name == "report.html":
            headers = {"Content-Security-Policy": REPORT_POLICY, "Cache-Control": "no-store"}
            return FileResponse(path, media_type=TYPES[".html"], headers=headers)
        headers = {"Cache-Control": "no-store"}
        return FileResponse(path, filename=name, headers=headers)


def _add_page(app: FastAPI) -> None:
    """The page's own files: those that are there when it is asked for, and no other path."""

    @app.get("/{path:path}")
    def page(path: str) -> Response:
        if path.startswith("api/"):
            raise NothingThereError(f"there is nothing at /{path[:100]}: see studio/API.md")
        files = {file.relative_to(PAGE).as_posix(): file for file in PAGE.rglob("*")}
        file = files.get(path or "index.html")
        if file is None or not file.is_file():
            if not path:
                return PlainTextResponse(NO_PAGE, 503)
            raise NothingThereError(f"the page has no file {path[:100]!r}")
        kept = "private, max-age=31536000, immutable" if path.startswith("assets/") else "no-cache"
        kind = TYPES.get(file.suffix, "application/octet-stream")
        return FileResponse(file, media_type=kind, headers={"Cache-Control": kept})
