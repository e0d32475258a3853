"""A stand-in for Ray's dashboard, for what a real one cannot be made to do here: another Ray version, an application
that stays DEPLOYING or fails at once, a second tenant. The local tier runs the same provider against the real one.

Speaks the part of the REST API that infra/provider/ray_api.py uses (ray 2.55, dashboard/modules/serve/serve_head.py).
"""

import json
import ssl
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

TOKEN = "5f" * 16


class Dashboard:
    """Keeps applications as Serve does: a PUT replaces all declared ones. `outcome` is what new ones become."""

    def __init__(self, version: str, certificate: Path | None = None) -> None:
        self.version = version
        self.required_header: tuple[str, str] | None = None
        self.outcome = "RUNNING"
        self.message = ""
        self.configs: dict[str, dict[str, Any]] = {}
        self.deployed: dict[str, float] = {}
        self.target_capacity: float | None = None
        self.broken = False
        self.page: str | None = None  # what a web server that is no dashboard would say
        self.puts = 0
        dashboard = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self._answer(dashboard.get(self.path))

            def do_PUT(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                if self._allowed():
                    dashboard.put(body)
                self._answer({})

            def _allowed(self) -> bool:
                if (
                    dashboard.required_header
                    and self.headers.get(dashboard.required_header[0]) != (dashboard.required_header[1])
                ):
                    return False
                return self.headers.get("Authorization") == f"Bearer {TOKEN}"

            def _answer(self, body: object) -> None:
                if dashboard.broken:
                    self.send_error(503)
                    return
                self.send_response((200 if body is not None else 404) if self._allowed() else 401)
                self.end_headers()
                text = json.dumps(body if self._allowed() else "token missing or wrong")
                self.wfile.write((dashboard.page or text).encode())

            def log_message(self, format: str, *args: object) -> None:
                """Quiet."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._scheme = "https" if certificate else "http"
        if certificate:  # a PEM file with the key in front of the certificate
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
            self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"{self._scheme}://127.0.0.1:{self._server.server_port}"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def get(self, path: str) -> object:
        if path == "/api/ray/version":
            return {"ray_version": self.version}
        if path == "/api/prometheus/sd":
            return [{"targets": ["127.0.0.1:1"], "labels": {}}]
        if path == "/api/serve/applications/":
            applications = {name: self._details(name) for name in self.configs}
            return {"applications": applications, "target_capacity": self.target_capacity}
        return None

    def put(self, body: dict[str, Any]) -> None:
        self.puts += 1
        self.target_capacity = body.get("target_capacity")
        declared = {application["name"]: application for application in body["applications"]}
        for name, config in declared.items():
            if self.configs.get(name) != config:
                self.deployed[name] = time.monotonic()
        self.configs = declared

    def _details(self, name: str) -> dict[str, Any]:
        config = self.configs[name]
        # As Serve does, a new config is DEPLOYING for a moment.
        status = "DEPLOYING" if time.monotonic() - self.deployed[name] < 1 else self.outcome
        replicas = "RUNNING" if status == "RUNNING" else "STARTING"
        deployments = {
            entry["name"]: {
                "status": "HEALTHY" if status == "RUNNING" else "UPDATING",
                "message": self.message if status != "RUNNING" else "",
                "target_num_replicas": entry["num_replicas"],
                "replicas": [{"state": replicas}] * entry["num_replicas"],
            }
            for entry in config.get("deployments", [])
        }
        return {"status": status, "message": "", "deployed_app_config": config, "deployments": deployments}
