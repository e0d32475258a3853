"""Our Kubernetes client against a stand-in API server on this machine: answers, failures in one line, no secrets."""

import base64
import gzip
import json
import ssl
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml

from infra.provider import kubernetes_api
from infra.provider.kubeconfig import _renewal
from infra.provider.kubernetes_api import Forbidden, KubernetesApi, Unavailable
from infra.provider.resource import ResourceError

TOKEN = "secret-token"
Json = dict[str, Any]


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


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A self-signed certificate of 127.0.0.1, key and certificate in one file."""
    file = tmp_path_factory.mktemp("tls") / "server.pem"
    request = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=127.0.0.1"]
    names = ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(file), "-out", str(file.with_name("ca.pem"))]
    subprocess.run([*request, *names], check=True, capture_output=True)
    file.write_text(file.read_text() + file.with_name("ca.pem").read_text())
    return file


@pytest.fixture
def server(certificate: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ApiServer]:
    for name in ("HTTPS_PROXY", "https_proxy", "KUBECONFIG"):
        monkeypatch.delenv(name, raising=False)
    server = ApiServer(certificate)
    yield server
    server.close()


Kubeconfig = Callable[..., Json]


@pytest.fixture
def kubeconfig(server: ApiServer, certificate: Path) -> Kubeconfig:
    """Makes the document of a kubeconfig, with this user and these changes of the cluster."""

    def make(user: Json | None = None, context: str = "here", **cluster: Any) -> Json:
        authority = base64.b64encode(certificate.with_name("ca.pem").read_bytes()).decode()
        there = {"server": server.url, "certificate-authority-data": authority, **cluster}
        return {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "c", "cluster": {k: v for k, v in there.items() if v is not None}}],
            "users": [{"name": "me", "user": {"token": TOKEN} if user is None else user}],
            "contexts": [{"name": context, "context": {"cluster": "c", "user": "me"}}],
            "current-context": context,
        }

    return make


@pytest.fixture
def api(kubeconfig: Kubeconfig) -> KubernetesApi:
    return KubernetesApi(yaml.safe_dump(kubeconfig()))


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


def test_an_object_and_none(server: ApiServer, api: KubernetesApi) -> None:
    server.answers["/api/v1/namespaces/a"] = (200, {"metadata": {"name": "a"}})
    assert api.get("/api/v1/namespaces/a") == {"metadata": {"name": "a"}}
    assert api.get("/api/v1/namespaces/b") is None
    assert server.seen[0].headers["Authorization"] == f"Bearer {TOKEN}"
    assert "gzip" in server.seen[0].headers["Accept-Encoding"]


def test_a_list_page_by_page(server: ApiServer, api: KubernetesApi) -> None:
    query = "?limit=500&labelSelector=a%3Db"
    server.answers[f"/api/v1/pods{query}"] = (200, {"metadata": {"continue": "x"}, "items": [{"a": 1}, {"a": 2}]})
    server.answers[f"/api/v1/pods{query}&continue=x"] = (200, {"metadata": {}, "items": [{"a": 3}]})
    assert api.list("/api/v1/pods", labelSelector="a=b") == [{"a": 1}, {"a": 2}, {"a": 3}]
    assert api.list("/apis/not.served/v1/things") == []
    server.answers["/api/v1/nodes?limit=500"] = (200, {"metadata": {}, "items": None})
    assert api.list("/api/v1/nodes") == []


def test_post_and_delete(server: ApiServer, api: KubernetesApi) -> None:
    server.answers["/api/v1/namespaces"] = (201, {"metadata": {"uid": "1"}})
    assert api.post("/api/v1/namespaces", {"metadata": {"name": "a"}}) == {"metadata": {"uid": "1"}}
    assert server.seen[0].body == {"metadata": {"name": "a"}}
    assert server.seen[0].command == "POST"
    assert "does not serve /apis/x" in failure(lambda: api.post("/apis/x", {}))
    server.answers["/api/v1/namespaces/a?orphanDependents=false"] = (200, {})
    assert api.delete("/api/v1/namespaces/a", orphanDependents=False) is True
    assert api.delete("/api/v1/namespaces/b") is False


PROXY = "/api/v1/namespaces/ns/services/http:ray:8265/proxy/api/serve/applications/"


def test_a_service_through_the_api_server(server: ApiServer, api: KubernetesApi) -> None:
    def ask() -> Any:
        return api.proxy_get("ns", "ray", 8265, "/api/serve/applications/", {"X-Ray-Authorization": "Bearer secret"})

    assert ask() is None
    server.answers[PROXY] = (200, [1, 2])
    assert ask() == [1, 2]
    assert server.seen[1].headers["X-Ray-Authorization"] == "Bearer secret"
    assert server.seen[1].headers["Authorization"] == f"Bearer {TOKEN}"
    server.answers[PROXY] = (200, "<html>")
    assert "service ns/ray:8265 does not answer /api/serve/applications/ with JSON" in failure(ask)
    server.answers[PROXY] = (401, "token missing")
    assert failure(ask).startswith("service ns/ray:8265 answered 401")
    server.answers[PROXY] = status(503, 'no endpoints available for service "ray"')
    assert "no endpoints available" in failure(ask, Unavailable)
    server.answers[PROXY] = status(403, 'services "ray" is forbidden: User "me" cannot get services/proxy')
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
    server: ApiServer, api: KubernetesApi, answer: tuple[int, Any], kind: type[ResourceError], words: str
) -> None:
    server.answers["/api/v1/pods"] = answer
    line = failure(lambda: api.get("/api/v1/pods"), kind)
    assert words in line
    assert server.url in line


def test_how_credentials_are_renewed(server: ApiServer, kubeconfig: Kubeconfig, tmp_path: Path) -> None:
    server.answers["/version"] = status(401, "Unauthorized")
    document = kubeconfig()
    content = yaml.safe_dump(document)
    assert "run `pulumi refresh` in the stack that owns the cluster" in failure(
        lambda: KubernetesApi(content).get("/version")
    )
    file = tmp_path / "config"
    file.write_text(content)
    assert "get a new kubeconfig" in failure(lambda: KubernetesApi(str(file)).get("/version"))
    plugin = tmp_path / "plugin"
    credential = {"kind": "ExecCredential", "apiVersion": "client.authentication.k8s.io/v1", "status": {"token": "x"}}
    plugin.write_text(f"#!/bin/sh\necho '{json.dumps(credential)}'\n")
    plugin.chmod(0o700)
    user = {"exec": {"command": str(plugin), "apiVersion": "client.authentication.k8s.io/v1"}}
    file.write_text(yaml.safe_dump(kubeconfig(user)))
    assert "log in with its credential plugin" in failure(lambda: KubernetesApi(str(file)).get("/version"))
    assert server.seen[-1].headers["Authorization"] == "Bearer x"
    doks = _renewal("https://0a1b.k8s.ondigitalocean.com", is_content=False, has_plugin=False)
    assert "7 days" in doks
    assert "doctl kubernetes cluster kubeconfig save" in doks


def test_nobody_listens(server: ApiServer, api: KubernetesApi) -> None:
    server.close()
    line = failure(lambda: api.get("/version"), Unavailable)
    assert server.url in line
    assert "Connection refused" in line


def test_a_server_that_does_not_answer(server: ApiServer, api: KubernetesApi, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kubernetes_api, "_SECONDS", (0.2, 0.2))
    server.answers["/version"] = (200, lambda: time.sleep(1))
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
def test_tls(server: ApiServer, kubeconfig: Kubeconfig, cluster: Json, words: str) -> None:
    server.answers["/version"] = (200, {})
    content = yaml.safe_dump(kubeconfig(**cluster))
    line = failure(lambda: KubernetesApi(content).get("/version"))
    assert words in line
    assert "check the certificates in the kubeconfig" in line


def test_tls_that_nobody_checks(server: ApiServer, kubeconfig: Kubeconfig, recwarn: pytest.WarningsRecorder) -> None:
    server.answers["/version"] = (200, {})
    skipped = yaml.safe_dump(kubeconfig(**{"insecure-skip-tls-verify": True, "certificate-authority-data": None}))
    assert KubernetesApi(skipped).get("/version") == {}
    assert not recwarn.list, "who wrote that into the kubeconfig knows"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"current-context": "gone"}, "context 'gone' is not in the kubeconfig; set cluster.context to one of: here"),
        ({"current-context": None}, "has no current context; set cluster.context to one of: here"),
        ({"contexts": None}, "set cluster.context to one of: none there"),
        ({"clusters": []}, "context 'here' of the kubeconfig has no cluster with a `server` URL"),
        ({"clusters": [{"name": "c", "cluster": {"server": "here"}}]}, "no cluster with a `server` URL"),
        (
            {"users": [{"name": "me", "user": {"exec": {"command": "no-such-plugin"}}}]},
            "`no-such-plugin`, which is not",
        ),
        (
            {"users": [{"name": "me", "user": {"exec": {"command": "false", "args": ["secret"]}}}]},
            "`false`, which failed",
        ),
        ({"users": [{"name": "me", "user": {"exec": {"args": ["secret"]}}}]}, "which failed"),
        ({"users": [{"name": "me", "user": {"client-key-data": "secret!", "token": 7}}]}, "is malformed"),
        ({"users": [{"name": "me", "user": {"tokenFile": "/nowhere/secret"}}]}, "is malformed"),
        ({"users": "secret"}, "is malformed"),
    ],
)
def test_a_kubeconfig_that_does_not_do(kubeconfig: Kubeconfig, change: Json, words: str) -> None:
    content = yaml.safe_dump({**kubeconfig(), **change})
    assert words in failure(lambda: KubernetesApi(content))


@pytest.mark.parametrize("text", ["{secret: [", "secret\n", "- secret\n", "\n"])
def test_a_text_that_is_no_kubeconfig(text: str, tmp_path: Path) -> None:
    assert "the kubeconfig is not a YAML document" in failure(lambda: KubernetesApi(text + "\n"))
    (tmp_path / "config").write_text(text)
    line = failure(lambda: KubernetesApi(str(tmp_path / "config")))
    assert f"kubeconfig {tmp_path / 'config'} is not a YAML document" in line


def test_files_that_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    missing = str(tmp_path / "missing")
    assert f"kubeconfig {missing} does not exist; set cluster.kubeconfig" in failure(lambda: KubernetesApi(missing))
    monkeypatch.setenv("KUBECONFIG", missing)
    assert f"kubeconfig {missing} does not exist" in failure(lambda: KubernetesApi())
    monkeypatch.delenv("KUBECONFIG")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert "kubeconfig ~/.kube/config does not exist" in failure(lambda: KubernetesApi())
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    assert "cannot be read: not a text file" in failure(lambda: KubernetesApi(str(tmp_path / "binary")))
    assert "Is a directory" in failure(lambda: KubernetesApi(str(tmp_path)))


def test_several_files_are_merged(
    server: ApiServer, kubeconfig: Kubeconfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.answers["/version"] = (200, {})
    one, two = kubeconfig(), kubeconfig(context="there", server="https://the-second-of-a-name.example")
    (tmp_path / "one").write_text(yaml.safe_dump({**one, "contexts": []}))
    (tmp_path / "two").write_text(yaml.safe_dump({**two, "users": [], "current-context": None}))
    monkeypatch.setenv("KUBECONFIG", f"{tmp_path}/one:{tmp_path}/missing:{tmp_path}/two")
    assert "'here' is not in" in failure(lambda: KubernetesApi())
    api = KubernetesApi(context="there")
    assert api.get("/version") == {}
    assert api.server == server.url


def test_files_beside_the_kubeconfig(
    server: ApiServer, kubeconfig: Kubeconfig, certificate: Path, tmp_path: Path
) -> None:
    server.answers["/version"] = (200, {})
    (tmp_path / "ca.pem").write_bytes(certificate.with_name("ca.pem").read_bytes())
    (tmp_path / "token").write_text("from a file")
    document = kubeconfig({"tokenFile": "token"}, **{"certificate-authority": "ca.pem"})
    del document["clusters"][0]["cluster"]["certificate-authority-data"]
    (tmp_path / "config").write_text(yaml.safe_dump(document))
    assert KubernetesApi(str(tmp_path / "config")).get("/version") == {}
    assert server.seen[0].headers["Authorization"] == "Bearer from a file"


def test_what_is_written_to_disk(
    server: ApiServer, kubeconfig: Kubeconfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    server.answers["/version"] = (200, {})
    key = base64.b64encode(f"a key, new each time {time.time()}".encode()).decode()
    KubernetesApi(yaml.safe_dump(kubeconfig())).get("/version")
    KubernetesApi(yaml.safe_dump(kubeconfig({"client-key-data": key, "client-certificate-data": key})))
    written = list(tmp_path.iterdir())
    assert written, "certificate and key: ssl reads them from files only"
    for file in written:
        assert file.stat().st_mode & 0o777 == 0o600
        assert TOKEN not in file.read_text()


def test_json_is_content_too(server: ApiServer, kubeconfig: Kubeconfig) -> None:
    server.answers["/version"] = (200, {})
    assert KubernetesApi(json.dumps(kubeconfig())).get("/version") == {}
