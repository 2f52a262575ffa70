"""The studio's server for tests: in this process, or in one of its own that can be killed."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import uvicorn

from thonecls.studio.launch import _listen
from thonecls.studio.project import Project
from thonecls.studio.server import create_app
from thonecls.studio.session import Studio

TOKEN = "a-token-for-tests-that-is-long-enough-0123"
PATIENCE = 120.0  # seconds, for a machine that has other things to do


class Reply(NamedTuple):
    """What the server answered."""

    status: int
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


class Client:
    """A page, as far as the server can tell."""

    def __init__(self, port: int, token: str = TOKEN, name: str = "test") -> None:
        self.port, self.token, self.name = port, token, name

    def ask(
        self,
        method: str,
        path: str,
        content: Any = None,
        *,
        raw: bytes | None = None,
        headers: dict[str, str] | None = None,
    ) -> Reply:
        """Send a request; raw: a body as it is; headers: those that are not as usual."""
        body = raw if content is None else json.dumps(content).encode()
        usual = {"X-Thonecls-Token": self.token, "X-Thonecls-Client": self.name}
        if body is not None:
            usual["Content-Type"] = "application/json"
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        try:
            connection.request(method, path, body, usual | (headers or {}))
            answer = connection.getresponse()
            return Reply(answer.status, dict(answer.getheaders()), answer.read())
        finally:
            connection.close()

    def get(self, path: str) -> Any:
        """The JSON at an address; an error where it is refused."""
        return self._checked(self.ask("GET", path))

    def send(self, method: str, path: str, content: Any = None) -> Any:
        """The JSON that an address answers with; an error where it refuses."""
        return self._checked(self.ask(method, path, {} if content is None else content))

    def stroke(self, kind: str, pixels: list[list[int]], **more: Any) -> Any:
        return self.send("POST", "/api/strokes", {"kind": kind, "pixels": pixels, **more})

    def until(self, found: Callable[[dict[str, Any]], Any]) -> dict[str, Any]:
        """The state, once something is true of it."""
        began = time.monotonic()
        while time.monotonic() - began < PATIENCE:
            state: dict[str, Any] = self.get("/api/state")
            if found(state):
                return state
            time.sleep(0.05)
        raise AssertionError(f"it never came true: {json.dumps(state)[:2000]}")

    def ended(self, kind: str) -> dict[str, Any]:
        """The last job of a kind, once none runs."""
        state = self.until(
            lambda state: (
                [job for job in state["jobs"] if job["kind"] == kind]
                and not [job for job in state["jobs"] if job["state"] == "running"]
            )
        )
        found: dict[str, Any] = [job for job in state["jobs"] if job["kind"] == kind][-1]
        return found

    @staticmethod
    def _checked(reply: Reply) -> Any:
        assert reply.status < 300, (reply.status, reply.body)
        return reply.json()


class Listener:
    """Hears events, as a page does."""

    def __init__(self, client: Client) -> None:
        self.events: list[tuple[str, Any]] = []
        self._connection = http.client.HTTPConnection("127.0.0.1", client.port, timeout=PATIENCE)
        self._connection.request("GET", f"/api/events?token={client.token}")
        self._socket = self._connection.sock
        self._answer = self._connection.getresponse()
        assert self._answer.status == 200
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()
        self.first("hello")

    def __enter__(self) -> Listener:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.shutdown(socket.SHUT_RDWR)
        self._thread.join(PATIENCE)
        self._answer.close()
        self._connection.close()

    def first(self, kind: str, found: Callable[[Any], Any] = lambda data: True) -> Any:
        """The first event of a kind of which something is true."""
        began = time.monotonic()
        while time.monotonic() - began < PATIENCE:
            for name, data in list(self.events):
                if name == kind and found(data):
                    return data
            time.sleep(0.02)
        raise AssertionError(f"no event {kind}: {[name for name, _ in self.events]}")

    def _listen(self) -> None:
        kind = ""
        try:
            for line in self._answer:
                text = line.decode().rstrip("\n")
                if text.startswith("event: "):
                    kind = text.removeprefix("event: ")
                elif text.startswith("data: "):
                    self.events.append((kind, json.loads(text.removeprefix("data: "))))
        except (OSError, ValueError, AttributeError):  # the server has ended
            return


@contextmanager
def serving(project: Project) -> Iterator[tuple[Client, Studio]]:
    """A studio in this process; trains only when it is asked to."""
    project.folder.mkdir(parents=True, exist_ok=True)
    studio = Studio(project)
    project.change(auto=False)
    with _listen("127.0.0.1", 0, project.folder) as listening:
        port = listening.getsockname()[1]
        app = create_app(studio, token=TOKEN, hosts={f"127.0.0.1:{port}", f"localhost:{port}"})
        config = uvicorn.Config(app, log_level="critical", timeout_graceful_shutdown=1)
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, args=([listening],), daemon=True)
        studio.begin()
        thread.start()
        try:
            while not server.started:
                time.sleep(0.01)
            yield Client(port), studio
        finally:
            studio.close()
            server.should_exit = True
            thread.join(20)


class Process:
    """`thonecls studio` as a user runs it, in a process of its own."""

    def __init__(self, *arguments: object) -> None:
        words = [sys.executable, "-m", "thonecls.cli", "studio", *map(str, arguments), "--no-open"]
        self.process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        found = None
        for line in self.process.stdout:
            if found := re.search(r"http://127\.0\.0\.1:(\d+)/\?token=(\S+)", line):
                break
        assert found is not None, self.process.wait()
        self.client = Client(int(found[1]), found[2])

    def __enter__(self) -> Process:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.kill()

    def kill(self) -> None:
        """End it as a power cut does."""
        self.process.kill()
        self._reap()

    def stop(self) -> int:
        """End it as Ctrl-C does; its exit code."""
        self.process.send_signal(signal.SIGINT)
        return self._reap()

    def _reap(self) -> int:
        code = self.process.wait(PATIENCE)
        assert self.process.stdout is not None
        self.process.stdout.close()
        return code


def end_process(number: int) -> None:
    """Kill a process that a server started, and that is not our child."""
    os.kill(number, signal.SIGKILL)
