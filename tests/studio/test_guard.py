"""Nobody but the page is answered, and nothing that it sends makes the server stumble."""

from __future__ import annotations

import http.client
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from commands import run
from serving import TOKEN, Client
from thonecls.datasets import Example
from thonecls.studio import server

SLOW = settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
GETS = [
    "/api/state",
    "/api/labels",
    "/api/envelope",
    "/api/suggestions",
    "/api/verification",
    "/api/export",
    "/api/tiles/scene/0/0/0?preset=pca",
    "/api/spectrum?row=1&column=1",
]
# What an address takes, with a value that would be taken.
TAKES: dict[tuple[str, str], dict[str, Any]] = {
    ("POST", "/api/strokes"): {"kind": "positive", "pixels": [[1, 2]], "origin": "stroke"},
    ("POST", "/api/similar"): {"row": 1, "column": 2},
    ("PUT", "/api/cut/quick-1"): {"cut": 0.5},
    ("PUT", "/api/settings"): {"label": "oak", "auto": False, "method": "density-ratio"},
    ("POST", "/api/train"): {"method": "none such", "preset": None, "coverage": None},
    ("POST", "/api/jobs/train-9/cancel"): {"keep": False},
    ("POST", "/api/suggestions"): {"size": 5},
    ("POST", "/api/verification"): {"size": 5},
    ("PUT", "/api/verification/1"): {"answer": "positive"},
    ("POST", "/api/export"): {"map": None},
}
ANYTHING = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**25), 10**25)
    | st.floats()
    | st.text(max_size=20)
    | st.sampled_from(["positive", "erase", "../../etc/passwd", "nan"]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=8,
)


def is_refused(reply: Any, *status: int) -> None:
    assert reply.status in status, (reply.status, reply.body[:300])
    words = reply.json()["error"]
    assert isinstance(words, str)
    assert len(words) > 10


@pytest.mark.parametrize("path", [*GETS, "/api/events", "/api/nothing", "/api/export/map.tif"])
@pytest.mark.parametrize("token", ["", "x", TOKEN[:-1], TOKEN + "0", "é"])
def test_no_token_no_answer(client: Client, path: str, token: str) -> None:
    given = {"X-Thonecls-Token": token.encode().decode("latin-1")}
    is_refused(client.ask("GET", path, headers=given), 401)


@pytest.mark.parametrize(("method", "path"), TAKES)
def test_no_token_no_change(client: Client, method: str, path: str) -> None:
    before = client.get("/api/labels")
    headers = {"X-Thonecls-Token": "wrong"}
    is_refused(client.ask(method, path, TAKES[method, path], headers=headers), 401)
    assert client.get("/api/labels") == before


def test_a_token_in_the_address_is_as_good(client: Client) -> None:
    headers = {"X-Thonecls-Token": ""}
    # A header that is there has the last word; a browser sends one or the other.
    is_refused(client.ask("GET", f"/api/state?token={TOKEN}", headers=headers), 401)
    connection = http.client.HTTPConnection("127.0.0.1", client.port)
    connection.request("GET", f"/api/state?token={TOKEN}")
    assert connection.getresponse().status == 200
    connection.close()


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1", "127.0.0.1:1", "", "localhost.evil"])
@pytest.mark.parametrize("path", ["/", "/api/state", "/studio.js"])
def test_another_host_is_refused(client: Client, host: str, path: str) -> None:
    is_refused(client.ask("GET", path, headers={"Host": host}), 403)


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "https://127.0.0.1"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
)
def test_another_page_is_refused(client: Client, headers: dict[str, str]) -> None:
    stroke = {"kind": "positive", "pixels": [[1, 2]]}
    is_refused(client.ask("POST", "/api/strokes", stroke, headers=headers), 403)
    own = {"Origin": f"http://127.0.0.1:{client.port}", "Sec-Fetch-Site": "same-origin"}
    assert client.ask("GET", "/api/state", headers=own).status == 200


@pytest.mark.parametrize(
    "path",
    [
        "/../server.py",
        "/..%2fserver.py",
        "/%2e%2e/server.py",
        "/assets/../../server.py",
        "//etc/passwd",
        "/api/export/..%2flabels.gpkg",
        "/api/export/%2e%2e%2flabels.gpkg",
        "/api/export/.export.json",
        "/api/tiles/map/..%2f..%2flabels.gpkg/0/0/0",
        "/api/cut/..",
        "/server.py",
        "/page",
        "/.",
        "/%00",
    ],
)
def test_no_path_leads_out_of_the_page_and_the_export(client: Client, path: str) -> None:
    reply = client.ask("GET", path)
    is_refused(reply, 404)
    assert b"import" not in reply.body


def test_every_answer_says_what_the_page_may_do(client: Client) -> None:
    for path in ("/", "/api/state", "/api/nothing", "/nothing"):
        headers = {name.lower(): value for name, value in client.ask("GET", path).headers.items()}
        assert headers["content-security-policy"].startswith("default-src 'self';")
        assert "unsafe" not in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"


def test_what_is_too_large_is_refused(client: Client) -> None:
    is_refused(client.ask("POST", "/api/strokes", raw=b" " * (8 * 2**20 + 1)), 413)
    many = [[0, 0]] * 200_001
    is_refused(client.ask("POST", "/api/strokes", {"kind": "erase", "pixels": many}), 422)
    # Without a length that could be looked at.
    connection = http.client.HTTPConnection("127.0.0.1", client.port)
    connection.putrequest("POST", "/api/strokes")
    connection.putheader("X-Thonecls-Token", TOKEN)
    connection.putheader("Transfer-Encoding", "chunked")
    connection.endheaders()
    part = b"%x\r\n" % 2**20 + b" " * 2**20 + b"\r\n"
    try:
        for _ in range(9):
            connection.send(part)
        connection.send(b"0\r\n\r\n")
        assert connection.getresponse().status == 413
    except (BrokenPipeError, ConnectionResetError):
        pass  # it did not read on
    connection.close()


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"null", b"\xff", b'{"kind": "erase"}', b"1"])
def test_what_is_no_message_is_refused(client: Client, body: bytes) -> None:
    is_refused(client.ask("POST", "/api/strokes", raw=body), 400, 422)


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/api/tiles/scene/0/0/0", 400),
        ("/api/tiles/scene/0/0/0?bands=1,2", 400),
        ("/api/tiles/scene/0/0/0?bands=0", 400),
        ("/api/tiles/scene/0/0/0?bands=99999", 400),
        ("/api/tiles/scene/0/0/0?bands=a", 400),
        ("/api/tiles/scene/0/0/0?bands=1&preset=pca", 400),
        ("/api/tiles/scene/0/0/0?preset=none", 400),
        ("/api/tiles/scene/0/0/0?preset=pca&clip=nan", 400),
        ("/api/tiles/scene/0/0/0?preset=pca&clip=51", 400),
        ("/api/tiles/scene/1/0/0?preset=pca", 404),
        ("/api/tiles/scene/0/1/0?preset=pca", 404),
        ("/api/tiles/scene/-1/0/0?preset=pca", 404),
        ("/api/tiles/scene/0/-1/0?preset=pca", 404),
        (f"/api/tiles/scene/0/{10**30}/0?preset=pca", 404),
        ("/api/tiles/scene/a/0/0?preset=pca", 422),
        ("/api/tiles/map/none/0/0/0", 404),
        ("/api/spectrum?row=96&column=0", 404),
        (f"/api/spectrum?row={10**40}&column=0", 404),
        ("/api/spectrum?row=1.5&column=0", 422),
        ("/api/spectrum", 422),
        ("/api/cut/none", 404),
        ("/api/export/map.tif", 404),
    ],
)
def test_what_is_not_there_is_said_so(client: Client, path: str, status: int) -> None:
    is_refused(client.ask("GET", path), status)


@SLOW
@given(data=st.data())
@pytest.mark.parametrize("address", [pair for pair in TAKES if pair[1] != "/api/settings"], ids=str)
def test_any_message_is_answered_or_refused(
    client: Client, address: tuple[str, str], data: st.DataObject
) -> None:
    usual = TAKES[address]
    name = data.draw(st.sampled_from([*usual, "other"]))
    content = {**usual, name: data.draw(ANYTHING)}
    reply = client.ask(*address, raw=json.dumps(content).encode())
    assert reply.status < 500, reply.body
    if reply.status >= 400:
        is_refused(reply, 400, 404, 409, 413, 422)


@SLOW
@given(
    points=st.lists(st.lists(st.floats() | st.integers(-9, 99), min_size=1, max_size=3)),
    radius=st.none() | st.floats(),
    kind=st.sampled_from(["polygon", "path"]),
)
def test_any_drawing_is_answered_or_refused(
    client: Client, points: list[list[float]], radius: float | None, kind: str
) -> None:
    content = {"kind": "erase", kind: points} | ({} if radius is None else {"radius": radius})
    reply = client.ask("POST", "/api/strokes", raw=json.dumps(content).encode())
    assert reply.status < 500, reply.body


@SLOW
@given(content=st.fixed_dictionaries({}, optional={"label": st.text(), "method": st.text()}))
def test_any_name_is_taken_or_refused(client: Client, content: dict[str, str]) -> None:
    reply = client.ask("PUT", "/api/settings", raw=json.dumps(content).encode())
    if reply.status == 200:
        assert reply.json()["label"] == content.get("label", reply.json()["label"])
    else:
        is_refused(reply, 400, 422)
    client.send("PUT", "/api/settings", {"label": "class"})


def test_without_its_page_the_server_says_what_to_do(
    client: Client, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(server, "PAGE", tmp_path)
    reply = client.ask("GET", "/")
    assert reply.status == 503
    assert b"make page" in reply.body


def test_other_hosts_need_a_word(
    farmland: Example, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = run(
        "studio", farmland.scene, "--project", tmp_path / "p", "--host", "0.0.0.0", "--no-open"
    )
    assert code == 2
    assert "--i-know" in capsys.readouterr().err
    assert not (tmp_path / "p").exists()
