"""The stand-in API server of a test, kubeconfigs that lead to it, and our client."""

import base64
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from stand_in_api_server import TOKEN, ApiServer, Json, Kubeconfig

from infra.provider.kubernetes_api import KubernetesApi


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A self-signed certificate of 127.0.0.1, key and certificate in one file."""
    file = tmp_path_factory.mktemp("tls") / "server.pem"
    request = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=127.0.0.1"]
    names = ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(file), "-out", str(file.with_name("ca.pem"))]
    subprocess.run([*request, *names], check=True, capture_output=True)
    file.write_text(file.read_text() + file.with_name("ca.pem").read_text())
    return file


@pytest.fixture
def api_server(certificate: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ApiServer]:
    for name in ("HTTPS_PROXY", "https_proxy", "KUBECONFIG"):
        monkeypatch.delenv(name, raising=False)
    server = ApiServer(certificate)
    yield server
    server.close()


@pytest.fixture
def kubeconfig(api_server: ApiServer, certificate: Path) -> Kubeconfig:
    """Makes the document of a kubeconfig, with this user and these changes of the cluster."""

    def make(user: Json | None = None, context: str = "here", **cluster: Any) -> Json:
        authority = base64.b64encode(certificate.with_name("ca.pem").read_bytes()).decode()
        there = {"server": api_server.url, "certificate-authority-data": authority, **cluster}
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
