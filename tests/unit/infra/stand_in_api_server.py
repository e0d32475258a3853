"""A Kubernetes API server on this machine that answers what a test says, and the one line that a call fails with."""

import gzip
import json
import ssl
import threading
from collections.abc import Callable
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from infra.provider.resource import ResourceError

TOKEN = "secret-token"
Json = dict[str, Any]
Kubeconfig = Callable[..., Json]


class ApiServer:
    """HTTPS on loopback: `answers` maps a path to (status, body), `seen` keeps the requests."""

    def __init__(self, certificate: Path) -> None:
        self.answers: dict[str, tuple[int, Any]] = {}
        self.seen: list[Any] = []
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                length = int(self.headers.get("Content-Length") or 0)
                self.body = json.loads(self.rfile.read(length) or b"null")
                server.seen.append(self)
                status, body = server.answers.get(self.path, (404, "404 page not found"))
                body = body() if callable(body) else body
                text = gzip.compress(body.encode() if isinstance(body, str) else json.dumps(body).encode())
                with suppress(OSError):  # the client would not wait
                    self.send_response(status)
                    self.send_header("Content-Encoding", "gzip")
                    self.send_header("Content-Length", str(len(text)))
                    self.end_headers()
                    self.wfile.write(text)

            do_POST = do_DELETE = do_GET  # noqa: N815

            def log_message(self, format: str, *args: object) -> None:
                """Quiet."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        threading.Thread(target=self._server.serve_forever, args=[0.02], daemon=True).start()
        self.url = f"https://127.0.0.1:{self._server.server_port}"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


def failure(call: Callable[[], object], kind: type[ResourceError] = ResourceError) -> str:
    """The one line that the call fails with."""
    with pytest.raises(ResourceError) as caught:
        call()
    assert type(caught.value) is kind
    line = str(caught.value)
    assert "\n" not in line
    assert "secret" not in line
    return line


def status(code: int, message: str) -> tuple[int, Json]:
    return code, {"kind": "Status", "message": message, "code": code}
