"""What happens, told to every page that listens."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator
from typing import Any

ALIVE = 15.0  # seconds between two signs of life
WAITING = 1000  # events for a page that does not read them: then it is left behind


class Events:
    """Passes events from any thread to the open streams."""

    def __init__(self) -> None:
        self._streams: dict[asyncio.Queue[bytes | None], asyncio.AbstractEventLoop] = {}
        self._lock = threading.Lock()
        self._closed = False

    def send(self, kind: str, data: Any) -> None:
        """Tell all pages; may be called from any thread."""
        message = encode(kind, data)
        with self._lock:
            for stream, loop in self._streams.items():
                if not loop.is_closed():
                    loop.call_soon_threadsafe(_put, stream, message)

    async def listen(self, first: bytes) -> AsyncIterator[bytes]:
        """Events from now on, after a first one, until the server ends."""
        stream: asyncio.Queue[bytes | None] = asyncio.Queue(WAITING)
        with self._lock:
            if self._closed:
                return
            self._streams[stream] = asyncio.get_running_loop()
        try:
            yield first
            while True:
                try:
                    message = await asyncio.wait_for(stream.get(), ALIVE)
                except TimeoutError:
                    message = b": still here\n\n"
                if message is None:
                    return
                yield message
        finally:
            with self._lock:
                self._streams.pop(stream, None)

    def close(self) -> None:
        """End all streams."""
        with self._lock:
            self._closed = True
            for stream, loop in self._streams.items():
                if not loop.is_closed():
                    loop.call_soon_threadsafe(_end, stream)


def encode(kind: str, data: Any) -> bytes:
    r"""An event as the browser takes it.

    >>> encode("overview", {"done": 1})
    b'event: overview\ndata: {"done": 1}\n\n'
    """
    return f"event: {kind}\ndata: {json.dumps(data)}\n\n".encode()


def _put(stream: asyncio.Queue[bytes | None], message: bytes) -> None:
    if stream.full():  # the browser connects again and asks for the state
        _end(stream)
    else:
        stream.put_nowait(message)


def _end(stream: asyncio.Queue[bytes | None]) -> None:
    while not stream.empty():
        stream.get_nowait()
    stream.put_nowait(None)
