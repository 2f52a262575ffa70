"""Who may ask the server, and for how much: token, host, origin, sizes, and the page's limits."""

from __future__ import annotations

import json
import secrets
from urllib.parse import parse_qs

from starlette.types import ASGIApp, Message, Receive, Scope, Send

MOST_BODY = 8 * 2**20  # bytes
POLICY = (
    "default-src 'self'; img-src 'self' blob: data:; style-src 'self'; worker-src 'self' blob:; "
    "connect-src 'self'; object-src 'none'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'"
)
HEADERS = {
    b"content-security-policy": POLICY.encode(),
    b"x-content-type-options": b"nosniff",
    b"referrer-policy": b"no-referrer",
    b"cross-origin-opener-policy": b"same-origin",
    b"cross-origin-resource-policy": b"same-origin",
    b"cache-control": b"no-store",
}


class _TooLargeError(Exception):
    """A body that is larger than any that makes sense."""


class Guard:
    """Refuses what does not come from the server's own page, before anything looks at it.

    token: goes with all that has to do with data; hosts: what `Host` may say, None for anything.
    """

    def __init__(self, app: ASGIApp, *, token: str, hosts: set[str] | None) -> None:
        self.app, self.token, self.hosts = app, token.encode(), hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request pass, or answer it here."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
            return
        headers = dict(scope["headers"])
        if refusal := self._refuse(scope, headers):
            await _answer(send, *refusal)
            return
        size = 0

        async def count() -> Message:
            nonlocal size
            message = await receive()
            size += len(message.get("body", b""))
            if size > MOST_BODY:
                raise _TooLargeError
            return message

        async def add(message: Message) -> None:
            if size > MOST_BODY:  # whatever was made of the error
                if message["type"] == "http.response.start":
                    await _answer(send, *_TOO_LARGE)
                return
            if message["type"] == "http.response.start":
                own = {name for name, _ in message["headers"]}
                more = [(name, value) for name, value in HEADERS.items() if name not in own]
                message["headers"] = [*message["headers"], *more]
            await send(message)

        await self.app(scope, count, add)

    def _refuse(self, scope: Scope, headers: dict[bytes, bytes]) -> tuple[int, str] | None:
        host = headers.get(b"host", b"").decode("latin-1").lower()
        if self.hosts is not None and host not in self.hosts:
            return 403, "this server answers at its own address only: open the one it printed"
        origin = headers.get(b"origin")
        if origin is not None and origin.decode("latin-1").lower() != f"http://{host}":
            return 403, "this server answers its own page only: open the address it printed"
        if not scope["path"].startswith("/api/"):
            return None
        if headers.get(b"sec-fetch-site", b"same-origin") not in (b"same-origin", b"none"):
            return 403, "this server answers its own page only: open the address it printed"
        given = headers.get(b"x-thonecls-token")
        if given is None:
            query = parse_qs(scope["query_string"].decode("latin-1"), max_num_fields=50)
            given = query.get("token", [""])[0].encode()
        if not secrets.compare_digest(given, self.token):
            return 401, "the token is missing or wrong: open the address that the server printed"
        length = headers.get(b"content-length", b"0")
        if not length.isdigit() or int(length) > MOST_BODY:
            return _TOO_LARGE
        return None


_TOO_LARGE = 413, f"a message has at most {MOST_BODY:,} bytes: send less at a time"


async def _answer(send: Send, status: int, words: str) -> None:
    body = json.dumps({"error": words}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
    start = {"type": "http.response.start", "status": status}
    await send({**start, "headers": [*headers, *HEADERS.items()]})
    await send({"type": "http.response.body", "body": body})
