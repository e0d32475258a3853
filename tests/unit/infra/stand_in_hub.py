"""A Hugging Face hub of one repository at one commit: listing, files, range requests, tokens and faults."""

import hashlib
import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

REPOSITORY, COMMIT, OTHER_COMMIT = "owner/model", "a" * 40, "b" * 40


@dataclass
class Hub:
    """The files, and what goes wrong.

    files: name -> content. token: wanted in each request, empty for none. cut: file -> bytes after which the
    connection breaks, once. listed: file -> a size that the listing gives wrongly. unavailable: so many requests are
    refused. asked: `METHOD path` of every request. ranges: `file Range-header`.
    """

    files: dict[str, bytes]
    token: str = ""
    cut: dict[str, int] = field(default_factory=dict)
    listed: dict[str, int] = field(default_factory=dict)
    unavailable: int = 0
    url: str = ""
    asked: list[str] = field(default_factory=list)
    ranges: list[str] = field(default_factory=list)

    def info(self) -> dict[str, object]:
        siblings = [
            {"rfilename": name, "size": self.listed.get(name, len(content)), "blobId": "0" * 40}
            for name, content in self.files.items()
        ]
        return {"id": REPOSITORY, "modelId": REPOSITORY, "sha": COMMIT, "siblings": siblings}

    def tree(self) -> list[dict[str, object]]:
        """What the client asks for before a download since its major version 1."""
        return [{"type": "file", "path": n, "size": len(c), "oid": "0" * 40} for n, c in self.files.items()]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    hub: Hub

    def log_message(self, format: str, *args: object) -> None:
        pass

    def do_HEAD(self) -> None:
        self._answer(body=False)

    def do_GET(self) -> None:
        self._answer(body=True)

    def _answer(self, body: bool) -> None:
        hub, path = self.hub, self.path.split("?")[0]
        hub.asked.append(f"{self.command} {path}")
        if hub.unavailable:
            hub.unavailable -= 1
            return self._send(503, b"")
        if hub.token and self.headers.get("Authorization") != f"Bearer {hub.token}":
            return self._send(401, b"", {"X-Error-Code": "GatedRepo", "X-Error-Message": "Access is restricted."})
        if re.fullmatch(rf"/api/models/{REPOSITORY}(/revision/({COMMIT}|main))?", path):
            return self._send(200, json.dumps(hub.info()).encode(), {"Content-Type": "application/json"})
        if path == f"/api/models/{REPOSITORY}/tree/{COMMIT}":
            return self._send(200, json.dumps(hub.tree()).encode(), {"Content-Type": "application/json"})
        found = re.fullmatch(rf"/{REPOSITORY}/resolve/{COMMIT}/(.+)", path)
        if found and found[1] in hub.files:
            return self._file(found[1], body)
        return self._send(404, b"", {"X-Error-Code": "RevisionNotFound"})

    def _file(self, name: str, body: bool) -> None:
        content = self.hub.files[name]
        etag = hashlib.sha256(content).hexdigest()
        headers = {"ETag": f'"{etag}"', "X-Repo-Commit": COMMIT, "Accept-Ranges": "bytes"}
        status, start = 200, 0
        if wanted := self.headers.get("Range"):
            self.hub.ranges.append(f"{name} {wanted}")
            start = int(wanted.removeprefix("bytes=").split("-")[0])
            status = 206
            headers["Content-Range"] = f"bytes {start}-{len(content) - 1}/{len(content)}"
        limit = self.hub.cut.pop(name, None) if body else None
        self._send(status, content[start:], headers, body, limit)

    def _send(
        self,
        status: int,
        content: bytes,
        headers: dict[str, str] | None = None,
        body: bool = True,
        limit: int | None = None,
    ) -> None:
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if body:
            self.wfile.write(content if limit is None else content[:limit])
        if limit is not None:
            self.close_connection = True


@contextmanager
def stand_in_hub(**settings: object) -> Iterator[Hub]:
    hub = Hub(**settings)  # type: ignore[arg-type]
    handler = type("Handler", (_Handler,), {"hub": hub})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    hub.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield hub
    finally:
        server.shutdown()
        server.server_close()
