"""Our Kubernetes client against a stand-in API server on this machine: answers, failures in one line, no secrets."""

import socket
import time
from typing import Any

import pytest
import yaml
from stand_in_api_server import TOKEN, ApiServer, Json, Kubeconfig, failure, status

from infra.provider import kubernetes_api
from infra.provider.kubernetes_api import Forbidden, KubernetesApi, Unavailable
from infra.provider.resource import ResourceError


def test_an_object_and_none(api_server: ApiServer, api: KubernetesApi) -> None:
    api_server.answers["/api/v1/namespaces/a"] = (200, {"metadata": {"name": "a"}})
    assert api.get("/api/v1/namespaces/a") == {"metadata": {"name": "a"}}
    assert api.get("/api/v1/namespaces/b") is None
    assert api_server.seen[0].headers["Authorization"] == f"Bearer {TOKEN}"
    assert "gzip" in api_server.seen[0].headers["Accept-Encoding"]


def test_a_list_page_by_page(api_server: ApiServer, api: KubernetesApi) -> None:
    query = "?limit=500&labelSelector=a%3Db"
    api_server.answers[f"/api/v1/pods{query}"] = (200, {"metadata": {"continue": "x"}, "items": [{"a": 1}, {"a": 2}]})
    api_server.answers[f"/api/v1/pods{query}&continue=x"] = (200, {"metadata": {}, "items": [{"a": 3}]})
    assert api.list("/api/v1/pods", labelSelector="a=b") == [{"a": 1}, {"a": 2}, {"a": 3}]
    assert api.list("/apis/not.served/v1/things") == []
    api_server.answers["/api/v1/nodes?limit=500"] = (200, {"metadata": {}, "items": None})
    assert api.list("/api/v1/nodes") == []


def test_post_and_delete(api_server: ApiServer, api: KubernetesApi) -> None:
    api_server.answers["/api/v1/namespaces"] = (201, {"metadata": {"uid": "1"}})
    assert api.post("/api/v1/namespaces", {"metadata": {"name": "a"}}) == {"metadata": {"uid": "1"}}
    assert api_server.seen[0].body == {"metadata": {"name": "a"}}
    assert api_server.seen[0].command == "POST"
    line = failure(lambda: api.post("/apis/x", {}))
    assert "does not serve /apis/x (404); check `server` in the kubeconfig: host, port, and the path" in line
    api_server.answers["/api/v1/namespaces/gone/pods"] = status(404, 'namespaces "gone" not found')
    line = failure(lambda: api.post("/api/v1/namespaces/gone/pods", {}))
    assert 'answered 404 to POST /api/v1/namespaces/gone/pods: namespaces "gone" not found' in line
    api_server.answers["/api/v1/namespaces/a?orphanDependents=false"] = (200, {})
    assert api.delete("/api/v1/namespaces/a", orphanDependents=False) is True
    assert api.delete("/api/v1/namespaces/b") is False


PROXY = "/api/v1/namespaces/ns/services/http:ray:8265/proxy/api/serve/applications/"


def test_a_service_through_the_api_server(api_server: ApiServer, api: KubernetesApi) -> None:
    def ask() -> Any:
        return api.proxy_get("ns", "ray", 8265, "/api/serve/applications/", {"X-Ray-Authorization": "Bearer secret"})

    assert ask() is None
    api_server.answers[PROXY] = (200, [1, 2])
    assert ask() == [1, 2]
    assert api_server.seen[1].headers["X-Ray-Authorization"] == "Bearer secret"
    assert api_server.seen[1].headers["Authorization"] == f"Bearer {TOKEN}"
    api_server.answers[PROXY] = (200, "<html>")
    assert "service ns/ray:8265 does not answer /api/serve/applications/ with JSON" in failure(ask)
    api_server.answers[PROXY] = (401, "token missing")
    assert failure(ask).startswith("service ns/ray:8265 answered 401")
    api_server.answers[PROXY] = status(503, 'no endpoints available for service "ray"')
    assert "no endpoints available" in failure(ask, Unavailable)
    api_server.answers[PROXY] = status(403, 'services "ray" is forbidden: User "me" cannot get services/proxy')
    assert 'User "me" cannot get services/proxy' in failure(ask, Forbidden)


@pytest.mark.parametrize(
    ("answer", "kind", "words"),
    [
        (status(401, "Unauthorized"), ResourceError, "refused the credentials of me (401): expired or wrong"),
        (status(403, "pods is forbidden"), Forbidden, ": pods is forbidden; ask for that permission"),
        (status(400, "bad\nselector"), ResourceError, "answered 400 to GET /api/v1/pods: bad selector"),
        (status(429, "slow down"), Unavailable, "answered 429"),
        (status(500, "etcd is away"), Unavailable, "etcd is away"),
        ((503, ""), Unavailable, "answered 503 to GET /api/v1/pods: no message"),
        ((504, {"reason": "no status"}), Unavailable, "answered 504"),
        ((200, "<html>please log in</html>"), ResourceError, "does not answer as a Kubernetes API; check `server`"),
        ((200, [1]), ResourceError, "does not answer as a Kubernetes API"),
    ],
)
def test_answers_that_are_failures(
    api_server: ApiServer, api: KubernetesApi, answer: tuple[int, Any], kind: type[ResourceError], words: str
) -> None:
    api_server.answers["/api/v1/pods"] = answer
    line = failure(lambda: api.get("/api/v1/pods"), kind)
    assert words in line
    assert api_server.url in line


def test_nobody_listens(api_server: ApiServer, api: KubernetesApi) -> None:
    api_server.close()
    line = failure(lambda: api.get("/version"), Unavailable)
    assert api_server.url in line
    assert "Connection refused" in line


@pytest.mark.parametrize("where", ["HTTPS_PROXY", "proxy-url"])
def test_a_proxy_that_nobody_is_behind(
    api_server: ApiServer, kubeconfig: Kubeconfig, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    proxy = "http://me:secret@127.0.0.1:9"
    if where == "HTTPS_PROXY":
        monkeypatch.setenv(where, proxy)
    content = yaml.safe_dump(kubeconfig(**({"proxy-url": proxy} if where == "proxy-url" else {})))
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    line = failure(lambda: KubernetesApi(content).get("/version"), Unavailable)
    assert f"{api_server.url} cannot be reached through the proxy 127.0.0.1:9 (" in line
    assert "check HTTPS_PROXY, and proxy-url in the kubeconfig; or put 127.0.0.1 into NO_PROXY" in line
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    api_server.answers["/version"] = (200, {})
    assert KubernetesApi(content).get("/version") == {}
    api_server.close()
    assert "proxy" not in failure(lambda: KubernetesApi(content).get("/version"), Unavailable)


@pytest.mark.parametrize("where", ["HTTPS_PROXY", "https_proxy", "ALL_PROXY", "proxy-url"])
@pytest.mark.parametrize(
    ("proxy", "words"),
    [
        ("socks5://127.0.0.1:9", "names a SOCKS proxy, which this program does not support; use an http:// proxy"),
        ("SOCKS5h://me:secret@127.0.0.1:9", "names a SOCKS proxy"),
        ("socks://127.0.0.1:9", "names a SOCKS proxy"),
        ("proxy.example.com:3128", "begins with neither http:// nor https://; write http://HOST:PORT"),
        ("127.0.0.1:3128", "begins with neither http:// nor https://"),
        ("ftp://x:1", "begins with neither http:// nor https://"),
        ("http://[", "is not a URL with a host"),
        ("http://", "is not a URL with a host"),
        ("http://me:secret/1@127.0.0.1:9", "is not a URL with a host"),
        ("http://me:1/secret@127.0.0.1:9", "has `/`, `?` or `#` in its user or password; write them as %2F, %3F, %23"),
        ("http://me:1#secret@127.0.0.1:9", "has `/`, `?` or `#` in its user or password"),
        ("http://127.0.0.1:9 ", "has white space"),
    ],
)
def test_a_proxy_that_does_not_do(
    api_server: ApiServer, kubeconfig: Kubeconfig, monkeypatch: pytest.MonkeyPatch, where: str, proxy: str, words: str
) -> None:
    for name in ("NO_PROXY", "no_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    setting = "`proxy-url` of cluster 'c' in the kubeconfig"
    if where != "proxy-url":
        setting = f"the environment variable {where}"
        monkeypatch.setenv(where, proxy)
    content = yaml.safe_dump(kubeconfig(**({"proxy-url": proxy} if where == "proxy-url" else {})))
    assert f"{setting} {words}" in failure(lambda: KubernetesApi(content))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    api_server.answers["/version"] = (200, {})
    assert KubernetesApi(content).get("/version") == {}, "nobody goes through it"


@pytest.mark.parametrize("name", [".secret", f"{'secret' * 20}.example", "a..secret"])
def test_what_ssl_does_not_take(kubeconfig: Kubeconfig, name: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:  # the stand-in would wait for the rest of the handshake
        server = f"https://127.0.0.1:{listener.getsockname()[1]}"
        api = KubernetesApi(yaml.safe_dump(kubeconfig(server=server, **{"tls-server-name": name})))
        line = failure(lambda: api.get("/version"))
    assert "Error); check `server` and `tls-server-name` in the kubeconfig" in line


def test_a_server_that_does_not_answer(
    api_server: ApiServer, api: KubernetesApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kubernetes_api, "_SECONDS", (0.2, 0.2))
    api_server.answers["/version"] = (200, lambda: time.sleep(1))
    start = time.monotonic()
    assert "timed out" in failure(lambda: api.get("/version"), Unavailable)
    assert time.monotonic() - start < 0.9, "once, without retries"


@pytest.mark.parametrize(
    ("cluster", "words"),
    [
        ({"certificate-authority-data": None}, "self-signed certificate"),
        ({"tls-server-name": "other.example"}, "Hostname mismatch"),
        ({"certificate-authority-data": "bm90IGEgY2VydGlmaWNhdGU="}, "TLS failed"),
    ],
)
def test_tls(api_server: ApiServer, kubeconfig: Kubeconfig, cluster: Json, words: str) -> None:
    api_server.answers["/version"] = (200, {})
    content = yaml.safe_dump(kubeconfig(**cluster))
    line = failure(lambda: KubernetesApi(content).get("/version"))
    assert words in line
    assert "check the certificates in the kubeconfig" in line


def test_tls_that_nobody_checks(
    api_server: ApiServer, kubeconfig: Kubeconfig, recwarn: pytest.WarningsRecorder
) -> None:
    api_server.answers["/version"] = (200, {})
    skipped = yaml.safe_dump(kubeconfig(**{"insecure-skip-tls-verify": True, "certificate-authority-data": None}))
    assert KubernetesApi(skipped).get("/version") == {}
    assert not recwarn.list, "who wrote that into the kubeconfig knows"
