"""How long Ray's dashboard is waited for."""

import contextlib
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from infra.provider import ray_api
from infra.provider.ray_api import RayApi
from infra.provider.resource import ResourceError


class Dashboard(BaseHTTPRequestHandler):
    """Answers after `seconds` for a method, as one does that first has to start Serve."""

    seconds: dict[str, float] = {}  # noqa: RUF012 - the server makes an object of this class for each request

    def _answer(self) -> None:
        time.sleep(self.seconds.get(self.command, 0.0))
        self.send_response(200)
        self.end_headers()
        with contextlib.suppress(BrokenPipeError):  # who asked has gone
            self.wfile.write(b'{"applications": {}}')

    do_GET = do_PUT = _answer  # noqa: N815

    def log_message(self, format: str, *args: object) -> None:
        """Nothing."""


@pytest.fixture
def address(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setattr(ray_api, "_SECONDS", 0.3)
    server = ThreadingHTTPServer(("127.0.0.1", 0), Dashboard)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def test_serve_that_starts_slowly_is_waited_for(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Dashboard, "seconds", {"PUT": 0.6})
    RayApi(address).deploy([], {})


def test_a_dashboard_that_hangs_is_not(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Dashboard, "seconds", {"GET": 0.6})
    with pytest.raises(ResourceError, match="cannot be reached"):
        RayApi(address).applications()
