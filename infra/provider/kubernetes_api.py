"""The Kubernetes API as the resources of this provider use it: raw REST paths in, JSON out, failures in one line.

Over the official client, which reads kubeconfigs, runs credential plugins and honours proxies. It is imported where it
is needed: that costs 0.3 s (measured), and the same provider process serves stacks that have no Kubernetes.
"""

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, urlsplit

from infra.provider.kubeconfig import connect
from infra.provider.resource import ResourceError

_SECONDS = (10.0, 10.0)  # to connect, and between two pieces of an answer
_PAGE = 500  # objects a page, as kubectl asks for
_REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
_TRANSIENT = (429, 500, 502, 503, 504)
_MESSAGE_CHARACTERS = 500
Json = dict[str, Any]
Query = str | int | bool


class Unavailable(ResourceError):
    """The API cannot be reached or is overloaded just now: who waits for something anyway may try again."""


class Forbidden(ResourceError):
    """The credentials are good, and do not allow this."""


class KubernetesApi:
    """One cluster. `kubeconfig` is a path or the content of a file; empty: $KUBECONFIG, else ~/.kube/config.

    `server` is its URL, `user` the name in the kubeconfig. May be used from several threads. Every method raises
    ResourceError in one line: Unavailable for what may pass, Forbidden for what is not allowed.
    """

    def __init__(self, kubeconfig: str = "", context: str = "") -> None:
        way = connect(kubeconfig, context)
        self.server, self.user, self._source, self._renewal = way.server, way.user, way.source, way.renewal
        self._client = way.client

    def __str__(self) -> str:
        return f"Kubernetes API {self.server}"

    def get(self, path: str, **query: Query) -> Json | None:
        """The object at `path`, or None where there is none (404)."""
        status, body = self._request("GET", path, query)
        return None if status == 404 else self._json(body)

    def list(self, path: str, **query: Query) -> list[Json]:
        """All objects of a collection, page by page; empty where the API does not serve it (404)."""
        items: list[Json] = []
        more: dict[str, Query] = {}
        while (page := self.get(path, **{"limit": _PAGE, **query, **more})) is not None:
            items += page.get("items") or []
            if not (token := page.get("metadata", {}).get("continue")):
                break
            more = {"continue": token}
        return items

    def post(self, path: str, body: Json, **query: str | int | bool) -> Json:
        """The object as created."""
        status, text = self._request("POST", path, query, body)
        if status == 404:
            told, by_api_server = _message(text)
            if by_api_server:  # such as a namespace that is not there
                raise ResourceError(f"{self} answered 404 to POST {path}: {told}")
            fix = f"check `server` in {self._source}: host, port, and the path if it has one"
            raise ResourceError(f"{self} does not serve {path} (404); {fix}")
        return self._json(text)

    def patch(self, path: str, body: Json) -> bool:
        """Merge `body` into the object (RFC 7386: null removes); whether there was one."""
        headers = {"Content-Type": "application/merge-patch+json"}
        return self._request("PATCH", path, {}, body, headers)[0] != 404

    def text(self, path: str, **query: Query) -> str | None:
        """What is no JSON, such as a pod's log; None where there is none (404)."""
        status, body = self._request("GET", path, query, headers={"Accept": "*/*"})
        return None if status == 404 else body.decode(errors="replace")

    def allowed(self, group: str, resource: str, verb: str, namespace: str = "") -> bool:
        """Whether the credentials may do this. resource: with its subresource, `pods/log`. namespace: empty for all."""
        resource, _, part = resource.partition("/")
        asked = {"group": group, "resource": resource, "subresource": part, "verb": verb, "namespace": namespace}
        review = self.post(_REVIEWS, {"spec": {"resourceAttributes": asked}})
        return bool(review.get("status", {}).get("allowed"))

    def delete(self, path: str, **query: Query) -> bool:
        """Whether there was something to delete."""
        return self._request("DELETE", path, query)[0] != 404

    def proxy_get(
        self, namespace: str, service: str, port: int, path: str, headers: Mapping[str, str] | None = None
    ) -> Any:
        """JSON that a service in the cluster answers over HTTP, through the API server; None for its 404.

        `headers` go to the service, all but Authorization: the API server keeps that one for itself.
        """
        name = f"{namespace}/{service}:{port}"
        target = f"/api/v1/namespaces/{namespace}/services/http:{service}:{port}/proxy/{quote(path.lstrip('/'))}"
        status, body = self._request("GET", target, {}, headers=headers, service=name)
        try:
            return None if status == 404 else json.loads(body)
        except ValueError:
            raise ResourceError(f"service {name} does not answer {path} with JSON") from None

    def _json(self, body: bytes) -> Json:
        try:
            answer = json.loads(body)
        except ValueError:
            answer = None
        if not isinstance(answer, dict):
            raise ResourceError(f"{self} does not answer as a Kubernetes API; check `server` in {self._source}")
        return answer

    def _request(
        self,
        method: str,
        path: str,
        query: Mapping[str, Query],
        body: Json | None = None,
        headers: Mapping[str, str] | None = None,
        service: str = "",
    ) -> tuple[int, bytes]:
        """Status and body of an answer that is a success or 404."""
        from kubernetes.client.exceptions import ApiException
        from urllib3.exceptions import HTTPError

        try:
            request = self._client.param_serialize(
                method,
                path,
                query_params=list(query.items()),
                header_params={"Accept": "application/json", "Accept-Encoding": "gzip", **(headers or {})},
                body=body,
                auth_settings=["BearerToken"],
            )
            response = self._client.call_api(*request, _request_timeout=_SECONDS)
            answer, status = response.read() or b"", response.status
        except ApiException as error:  # the client's way to say that TLS failed: there was no answer
            if "CERTIFICATE_VERIFY_FAILED" not in str(error.reason) and "EOF" in str(error.reason):
                # What a load balancer without a server behind it looks like: an API server that restarts.
                raise Unavailable(f"{self} cannot be reached (TLS broken off)") from None
            raise ResourceError(
                f"{self}: TLS failed ({_cause(error.reason)}); check the certificates in {self._source}"
            ) from None
        except (HTTPError, OSError) as error:
            raise Unavailable(self._not_reached(_cause(error))) from None
        except ValueError as error:  # what ssl and http.client cannot take; they quote it
            fix = f"check `server` and `tls-server-name` in {self._source}"
            raise ResourceError(f"{self} cannot be asked ({type(error).__name__}); {fix}") from None
        if status < 300 or status == 404:
            return status, answer
        raise self._refused(status, answer, f"{method} {path}", service)

    def _not_reached(self, cause: str) -> str:
        if not (proxy := _proxy(self._client)):
            return f"{self} cannot be reached ({cause}); check the network, and `server` in {self._source}"
        host = urlsplit(self.server).hostname
        return (
            f"{self} cannot be reached through the proxy {proxy} ({cause}); check HTTPS_PROXY, and proxy-url in "
            f"{self._source}; or put {host} into NO_PROXY"
        )

    def _refused(self, status: int, body: bytes, request: str, service: str) -> ResourceError:
        told, by_api_server = _message(body)
        kind = Unavailable if status in _TRANSIENT else ResourceError
        if service and not (by_api_server and status in (401, 403)):
            return kind(f"service {service} answered {status} through the {self}: {told}")
        if status == 401:
            return ResourceError(
                f"{self} refused the credentials of {self.user} (401): expired or wrong; {self._renewal}"
            )
        if status == 403:
            return Forbidden(f"{self}: {told}; ask for that permission, or use another kubeconfig")
        return kind(f"{self} answered {status} to {request}: {told}")


def _message(body: bytes) -> tuple[str, bool]:
    """What an answer says went wrong, in one line, and whether the API server itself says it."""
    text = body.decode(errors="replace")
    try:
        status = json.loads(text)
    except ValueError:
        status = None
    by_api_server = isinstance(status, dict) and status.get("kind") == "Status"
    if isinstance(status, dict) and by_api_server:
        text = str(status.get("message") or status.get("reason"))
    return " ".join(text.split())[:_MESSAGE_CHARACTERS] or "no message", by_api_server


def _proxy(client: Any) -> str:
    """Host and port of the proxy that a client goes through, without the user and password; empty without one."""
    from urllib3 import PoolManager

    if type(client.rest_client.pool_manager) is PoolManager:  # NO_PROXY names this server, or there is no proxy
        return ""
    return urlsplit(client.configuration.proxy).netloc.rpartition("@")[2]


def _cause(error: object) -> str:
    """The reason in a urllib3 error, without its object dumps."""
    reason: Any = error
    while isinstance(inner := getattr(reason, "reason", None) or getattr(reason, "__cause__", None), BaseException):
        reason = inner
    text = " ".join(str(reason).split()).rpartition(">: ")[2].rpartition("): ")[2]
    return text.removeprefix("SSLError ") or type(reason).__name__
