"""Ray's dashboard REST API: version, Serve applications, metrics endpoints. No assumption about where the cluster is.

Source: ray 2.55, dashboard/modules/serve/serve_head.py and reporter/reporter_head.py (read), and run.
"""

from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import requests
import yaml

from infra.provider.resource import ResourceError

_SECONDS = 30.0  # one request; the first PUT starts Serve itself, measured 5 s on an idle machine, 20 s on a busy one


class RayApi:
    """A dashboard at `address`, with Ray's token and TLS where the cluster has them."""

    def __init__(
        self, address: str, token_file: str | None = None, ca_file: str | None = None, headers_file: str | None = None
    ) -> None:
        self.address = address.rstrip("/")
        self._session = requests.Session()
        # A proxy that the environment names is for the world outside, not for a head on this machine.
        self._session.trust_env = urlsplit(address).hostname not in ("127.0.0.1", "localhost", "::1")
        self._verify: str | bool = True
        if ca_file:
            _readable(ca_file, "ray.caFile")
            self._verify = ca_file
        if headers_file:
            self._session.headers.update(yaml.safe_load(_readable(headers_file, "ray.headersFile")) or {})
        if token_file:
            token = _readable(token_file, "ray.tokenFile").strip()
            self._session.headers["Authorization"] = f"Bearer {token}"

    def reachable(self) -> bool:
        """Whether the dashboard answers a Serve request at all."""
        try:
            self.applications()
        except ResourceError:
            return False
        return True

    def version(self) -> str:
        """Ray's version on the cluster."""
        return self._request("GET", "/api/ray/version").json()["ray_version"]

    def applications(self) -> dict[str, Any]:
        """Serve's details of all applications: name -> ApplicationDetails (ray.serve.schema)."""
        return self._request("GET", "/api/serve/applications/").json()["applications"]

    def http_options(self) -> dict[str, Any] | None:
        """Host and port that Serve's proxies really have, or None while Serve does not run."""
        return self._request("GET", "/api/serve/applications/").json().get("http_options")

    def deploy(self, applications: list[dict[str, Any]], http_options: dict[str, Any]) -> None:
        """Declare the applications that shall exist; Serve removes declared ones that are not in the list."""
        config = {"proxy_location": "EveryNode", "http_options": http_options, "applications": applications}
        self._request("PUT", "/api/serve/applications/", json=config)

    def metrics_urls(self) -> list[str]:
        """Prometheus endpoints of the cluster's nodes, as Ray's service discovery names them."""
        groups = self._request("GET", "/api/prometheus/sd").json()
        return sorted({f"http://{target}/metrics" for group in groups for target in group["targets"]})

    def _request(self, method: str, path: str, json: Any = None) -> requests.Response:
        try:
            # `verify` goes with each request: one set on the session loses against REQUESTS_CA_BUNDLE.
            response = self._session.request(
                method, self.address + path, json=json, timeout=_SECONDS, verify=self._verify
            )
        except requests.exceptions.SSLError as error:
            raise ResourceError(f"Ray at {self.address}: TLS failed ({_cause(error)}); check ray.caFile") from None
        except requests.RequestException as error:
            raise ResourceError(
                f"Ray at {self.address} cannot be reached ({_cause(error)}); check ray.address and the network"
            ) from None
        if response.status_code in (401, 403):
            raise ResourceError(f"Ray at {self.address} refused the token; check ray.tokenFile")
        if response.status_code == requests.codes.not_found:
            raise ResourceError(f"no Ray dashboard at {self.address} ({path} is not there); check ray.address")
        if not response.ok:
            detail = " ".join(response.text.split())[:500]
            raise ResourceError(f"Ray at {self.address} answered {response.status_code} to {method} {path}: {detail}")
        return response


def _readable(path: str, key: str) -> str:
    try:
        return Path(path).expanduser().read_text()
    except OSError as error:
        raise ResourceError(f"{key}: cannot read {path}: {error.strerror}") from None


def _cause(error: Exception) -> str:
    """The innermost reason of a requests error, without its object dumps."""
    reason: BaseException = error
    while (inner := getattr(reason, "reason", None) or reason.__context__) and isinstance(inner, BaseException):
        reason = inner
    return str(reason).rpartition(": ")[2].rpartition("> ")[2] or type(reason).__name__
