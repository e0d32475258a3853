"""Ray's dashboard REST API: version, Serve applications, metrics endpoints. No assumption about where the cluster is.

Source: ray 2.55, dashboard/modules/serve/serve_head.py and reporter/reporter_head.py (read), and run.
"""

from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import requests
import yaml

from infra.provider.resource import ResourceError

_APPLICATIONS = "/api/serve/applications/"
_SECONDS = 30.0  # one request
# The first PUT starts Serve itself: measured 5 s on an idle machine, 20 s on a busy one, over 30 s on one at load 7.
_START_SECONDS = 120.0


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
            self._verify = str(Path(ca_file).expanduser())
        if headers_file:
            self._session.headers.update(_headers(headers_file))
        if token_file:
            token = _readable(token_file, "ray.tokenFile").strip()
            if not token.isascii() or not token.isprintable() or " " in token or not token:
                raise ResourceError(f"ray.tokenFile: {token_file} does not hold one token and nothing else")
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
        return self._get("/api/ray/version", "ray_version")

    def applications(self) -> dict[str, Any]:
        """Serve's details of all applications: name -> ApplicationDetails (ray.serve.schema)."""
        return self._get(_APPLICATIONS, "applications")

    def http_options(self) -> dict[str, Any] | None:
        """Host and port that Serve's proxies really have, or None while Serve does not run."""
        return self._get(_APPLICATIONS).get("http_options")

    def deploy(self, applications: list[dict[str, Any]], http_options: dict[str, Any]) -> None:
        """Declare the applications that shall exist; Serve removes declared ones that are not in the list.

        A running Serve keeps its own http_options. Its target_capacity, which is everybody's, is declared again.
        """
        config = {"proxy_location": "EveryNode", "http_options": http_options, "applications": applications}
        if (capacity := self._get(_APPLICATIONS).get("target_capacity")) is not None:
            config["target_capacity"] = capacity
        self._request("PUT", _APPLICATIONS, json=config)

    def metrics_urls(self) -> list[str]:
        """Prometheus endpoints of the cluster's nodes, as Ray's service discovery names them."""
        groups = self._get("/api/prometheus/sd")
        return sorted({f"http://{target}/metrics" for group in groups for target in group["targets"]})

    def _get(self, path: str, key: str | None = None) -> Any:
        """The JSON answer, or what stands under `key` in it."""
        try:
            answer = self._request("GET", path).json()
            return answer if key is None else answer[key]
        except (ValueError, KeyError, TypeError):
            raise ResourceError(f"{self.address} does not answer as a Ray dashboard; check ray.address") from None

    def _request(self, method: str, path: str, json: Any = None) -> requests.Response:
        patience = (_SECONDS, _START_SECONDS if method == "PUT" else _SECONDS)  # to connect, and for the answer
        try:
            # `verify` goes with each request: one set on the session loses against REQUESTS_CA_BUNDLE.
            response = self._session.request(
                method, self.address + path, json=json, timeout=patience, verify=self._verify
            )
        except requests.exceptions.SSLError as error:
            raise ResourceError(f"Ray at {self.address}: TLS failed ({_cause(error)}); check ray.caFile") from None
        except requests.exceptions.InvalidHeader:
            raise ResourceError(f"ray.headersFile: Ray at {self.address} cannot be sent these headers") from None
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
    except UnicodeDecodeError:
        raise ResourceError(f"{key}: {path} is not a text file") from None


def _headers(path: str) -> dict[str, str]:
    """Headers of a YAML file. The errors never quote it: it holds secrets."""
    try:
        headers = yaml.safe_load(_readable(path, "ray.headersFile"))
    except yaml.YAMLError:
        headers = None
    if not isinstance(headers, dict) or not all(isinstance(x, str) for pair in headers.items() for x in pair):
        raise ResourceError(f"ray.headersFile: {path} is not YAML of the form `Name: value`, all text")
    return headers


def _cause(error: Exception) -> str:
    """The innermost reason of a requests error, without its object dumps."""
    reason: BaseException = error
    while (inner := getattr(reason, "reason", None) or reason.__context__) and isinstance(inner, BaseException):
        reason = inner
    return str(reason).rpartition(": ")[2].rpartition("> ")[2] or type(reason).__name__
