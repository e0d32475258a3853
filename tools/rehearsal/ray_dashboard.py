"""A stand-in for Ray in simulated pods: dashboard (8265), agent health (52365), Serve proxy (8000).

python -m tools.rehearsal.ray_dashboard CONTROL_FILE KUBECONFIG       (in the namespace)

One process answers for all pods: the address that a request came to says which. Every head pod is a Ray of its own,
and a new pod a fresh one, as after a head's crash without GCS fault tolerance. Real are KubeRay, which submits the
Serve config and reads its state, and the way there through the API server's proxy. Where the RayCluster has token
authentication, the token must be the one of its secret, as `Authorization` or `x-ray-authorization`.

Speaks what KubeRay and infra/provider/ray_api.py use (ray 2.55, dashboard/modules/serve/serve_head.py).
"""

import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import urllib3
from kubernetes import client, config

from tools.rehearsal.ray_pods import RayPod, RayPods
from tools.rehearsal.ray_serve import Outcomes, Serve

DASHBOARD_PORT, AGENT_PORT, PROXY_PORT, METRICS_PORT = 8265, 52365, 8000, 8080
_APPLICATIONS = "/api/serve/applications"
_HEALTH = {"/api/healthz", "/api/gcs_healthz", "/api/local_raylet_healthz", "/-/healthz"}


class Answer(Exception):
    """A request that is refused: status and text."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


class Rays:
    """Serve of every head pod that has been asked, by pod uid."""

    def __init__(self, pods: RayPods, outcomes: Outcomes) -> None:
        self.pods = pods
        self._outcomes = outcomes
        self._serves: dict[str, Serve] = {}
        self._lock = threading.Lock()

    def serve_of(self, head: RayPod) -> Serve:
        with self._lock:
            return self._serves.setdefault(head.uid, Serve(head, self._outcomes))


def handler(rays: Rays) -> type[BaseHTTPRequestHandler]:
    """The handler class for all ports."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self._respond(self._get)

        def do_PUT(self) -> None:
            self._respond(self._put)

        def do_DELETE(self) -> None:
            self._respond(self._delete)

        def _get(self, path: str, pod: RayPod) -> object:
            if path in _HEALTH:
                return "success"
            serve = rays.serve_of(pod)
            if self.connection.getsockname()[1] == PROXY_PORT:
                return self._proxied(path, serve)
            self._require_token(pod)
            if path in ("/api/ray/version", "/api/version"):
                return {"version": "4", "ray_version": rays.pods.ray_version(pod)}
            if path == "/api/prometheus/sd":
                targets = [f"{address}:{METRICS_PORT}" for address in rays.pods.addresses(pod)]
                return [{"targets": targets, "labels": {"job": "ray"}}]
            if path.rstrip("/") == _APPLICATIONS:
                return serve.details(rays.pods.ready_gpus(pod))
            raise Answer(404, "404: Not Found")

        def _proxied(self, path: str, serve: Serve) -> object:
            routes = serve.routes()
            if path == "/-/routes":
                return routes
            raise Answer(501 if routes else 404, "simulated: there is no engine behind this Serve proxy")

        def _put(self, path: str, pod: RayPod) -> object:
            self._require_token(pod)
            if path.rstrip("/") != _APPLICATIONS or not pod.is_head:
                raise Answer(404, "404: Not Found")
            try:
                rays.serve_of(pod).deploy(json.loads(self._body))
            except (ValueError, KeyError, TypeError) as error:
                raise Answer(400, f"not a ServeDeploySchema: {error!r}") from None
            return {}

        def _delete(self, path: str, pod: RayPod) -> object:
            self._require_token(pod)
            rays.serve_of(pod).deploy({"applications": []})
            return {}

        def _require_token(self, pod: RayPod) -> None:
            if pod.token is None:
                return
            given = {self.headers.get("Authorization"), self.headers.get("x-ray-authorization")}
            if f"Bearer {pod.token}" not in given:
                raise Answer(401 if given == {None} else 403, "Unauthorized: missing or wrong authentication token")

        def _respond(self, verb: Any) -> None:
            self._body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            address = self.connection.getsockname()[0]
            try:
                pod = rays.pods.at(address)
                if pod is None:
                    raise Answer(503, f"simulated: no Ray pod has the address {address}")
                status, body = 200, verb(self.path.partition("?")[0], pod)
            except Answer as refused:
                status, body = refused.status, str(refused)
            except (client.ApiException, urllib3.exceptions.HTTPError) as error:
                status, body = 503, f"simulated: the API server does not answer: {error!r}"
            data = (body if isinstance(body, str) else json.dumps(body)).encode()
            self.send_response(status)
            self.send_header("Content-Type", "text/plain" if isinstance(body, str) else "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: object) -> None:
            """Only what changes something, or fails, is worth a line."""
            if self.command != "GET" or str(args[1]) >= "400":
                print(f"{self.connection.getsockname()[0]} {self.command} {self.path} {args[1]}", flush=True)

    return Handler


def main(control: Path, kubeconfig: Path) -> None:
    rays = Rays(RayPods(config.new_client_from_config(str(kubeconfig))), Outcomes(control))
    ports = (DASHBOARD_PORT, AGENT_PORT, PROXY_PORT)
    servers = [ThreadingHTTPServer(("0.0.0.0", port), handler(rays)) for port in ports]  # noqa: S104 - the namespace
    threads = [threading.Thread(target=server.serve_forever) for server in servers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
