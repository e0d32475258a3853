"""The way onto a cluster that is not ours: TLS with a private authority, and headers for a proxy in front of it."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from serving.versions import platform_versions
from tests.engine.stand_in_dashboard import TOKEN, Dashboard
from tests.shell import Shell, assert_one_clear_line


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    """A self-signed certificate of 127.0.0.1, key and certificate in one file."""
    file = tmp_path / "dashboard.pem"
    request = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=127.0.0.1"]
    names = ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(file), "-out", str(tmp_path / "ca.pem")]
    subprocess.run([*request, *names], check=True, capture_output=True)
    file.write_text(file.read_text() + (tmp_path / "ca.pem").read_text())
    return file


@pytest.fixture
def secure(certificate: Path) -> Iterator[Dashboard]:
    dashboard = Dashboard(platform_versions("cpu")["ray"], certificate)
    yield dashboard
    dashboard.close()


def test_tls_token_and_headers(shell: Shell, secure: Dashboard, tmp_path: Path) -> None:
    secure.required_header = ("X-Proxy-Key", "a secret of the proxy")
    (tmp_path / "token").write_text(TOKEN)
    (tmp_path / "headers.yaml").write_text("X-Proxy-Key: a secret of the proxy\n")
    ray = {"address": secure.url, "serviceUrl": "https://127.0.0.1:1", "tokenFile": str(tmp_path / "token")}
    base = {"model": "rehearsal-qwen3-moe", "platform": "cpu", "target": "ray", "scenario": "rehearsal"}

    shell.write_stack("remote", topology="agg-1", ray=ray, **base)
    assert shell.run("pulumi stack select --create remote").ok
    assert_one_clear_line(shell.run("pulumi up --yes"), secure.url, "TLS failed", "ray.caFile")

    ray["caFile"] = str(tmp_path / "ca.pem")
    shell.write_stack("remote", ray=ray)
    assert_one_clear_line(shell.run("pulumi up --yes"), secure.url, "refused")

    ray["headersFile"] = str(tmp_path / "headers.yaml")
    shell.write_stack("remote", ray=ray)
    up = shell.run("pulumi up --yes")
    assert up.ok, up.text
    assert "llm" in secure.configs
    state = shell.run("pulumi stack export --show-secrets").text
    assert "a secret of the proxy" not in state
    assert TOKEN not in state
    assert shell.run("pulumi destroy --yes --skip-preview").ok
    assert secure.configs == {}
