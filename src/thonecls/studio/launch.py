"""Starting the server: its port, its token, the browser, and an orderly end."""

from __future__ import annotations

import ipaddress
import json
import os
import secrets
import signal
import socket
import threading
import webbrowser
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType

import uvicorn

from thonecls.errors import ConfigError, FileError
from thonecls.files import locked
from thonecls.studio.project import ADDRESS, Project
from thonecls.studio.server import create_app
from thonecls.studio.session import Studio

LOOPBACK = "127.0.0.1"


class _Server(uvicorn.Server):
    """Ends the streams of events first: a browser would hold them open."""

    def __init__(self, config: uvicorn.Config, studio: Studio) -> None:
        super().__init__(config)
        self.studio = studio

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Take signals as a wish to end; uvicorn's own way sends them on after the end."""
        wishes = (signal.SIGINT, signal.SIGTERM)
        before = {wish: signal.signal(wish, self.handle_exit) for wish in wishes}
        try:
            yield
        finally:
            for wish, handler in before.items():
                signal.signal(wish, handler)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self.studio.events.close()
        super().handle_exit(sig, frame)


def serve(
    project: Project,
    *,
    host: str = LOOPBACK,
    port: int = 0,
    known_risk: bool = False,
    open_page: bool = True,
    on_start: Callable[[str], None],
) -> None:
    """Serve a project until somebody ends it; on_start hears the address."""
    check_host(host, known_risk)
    project.folder.mkdir(parents=True, exist_ok=True)
    with locked(project.folder):
        studio = Studio(project)
        try:
            with _listen(host, port, project.folder) as listening:
                number = listening.getsockname()[1]
                token = _token(project.folder)
                _remember(project.folder, number, token)
                shown = f"[{host}]" if ":" in host else host
                own = {shown.lower(), "localhost"} if _is_loopback(host) else None
                hosts = None if own is None else {f"{name}:{number}" for name in own}
                app = create_app(studio, token=token, hosts=hosts)
                config = uvicorn.Config(
                    app,
                    log_level="error",
                    access_log=False,
                    timeout_graceful_shutdown=3,
                    h11_max_incomplete_event_size=2**16,
                )
                studio.begin()
                address = f"http://{shown}:{number}/?token={token}"
                on_start(address)
                if open_page:
                    threading.Timer(0.5, webbrowser.open, [address]).start()
                _Server(config, studio).run(sockets=[listening])
        finally:
            studio.close()


def check_host(host: str, known_risk: bool) -> None:
    """Refuse to be reached from elsewhere, unless somebody knows what that means."""
    if not _is_loopback(host) and not known_risk:
        raise ConfigError(
            f"'host' {host} lets others on the network reach your files, without encryption: say "
            "'i_know' if that is meant, or leave 'host' out",
            options=("host", "i_know"),
        )


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    with suppress(ValueError):
        return ipaddress.ip_address(host).is_loopback
    return False


def _listen(host: str, port: int, folder: Path) -> socket.socket:
    """A socket at the port that is asked for, else at that of the last start, else at any."""
    if not 0 <= port < 2**16:
        raise ConfigError(f"'port' must be from 0 to 65535. Got {port} instead")
    last = _address(folder).get("port", 0)
    failed: Exception | None = None
    for number in [port] if port else [last, 0]:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        # Named as TCP, so that asyncio sends small answers at once and not after 40 ms.
        listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        try:
            if os.name == "posix":
                listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listening.bind((host, number))
            listening.listen(128)
            return listening
        except (OSError, OverflowError) as error:
            listening.close()
            failed = error
    raise FileError(
        f"cannot listen at {host}, port {port} ({failed}): choose another 'port'", options=("port",)
    )


def _address(folder: Path) -> dict[str, int | str]:
    with suppress(OSError, ValueError):
        found = json.loads((folder / ADDRESS).read_text("utf-8"))
        if (
            isinstance(found, dict)
            and isinstance(found.get("port"), int)
            and 0 <= found["port"] < 2**16
            and isinstance(found.get("token"), str)
            and len(found["token"]) >= 32
            and found["token"].isascii()
        ):
            return found
    return {}


def _token(folder: Path) -> str:
    """The token of the last start, so that an open page finds the server again, or a new one."""
    return str(_address(folder).get("token") or secrets.token_urlsafe(32))


def _remember(folder: Path, port: int, token: str) -> None:
    """Keep port and token, for the owner's eyes only."""
    path = folder / ADDRESS
    path.unlink(missing_ok=True)
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "w") as file:
        json.dump({"port": port, "token": token}, file)
