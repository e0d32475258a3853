"""A shell whose stack is on a cluster that a stand-in plays."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from serving.versions import platform_versions
from tests.engine.campaigns import Cluster, User
from tests.engine.stand_in_dashboard import TOKEN, Dashboard
from tests.shell import Shell


@pytest.fixture
def dashboard() -> Iterator[Dashboard]:
    """A stand-in dashboard of the Ray version that the CPU platform is built for."""
    dashboard = Dashboard(platform_versions("cpu")["ray"])
    yield dashboard
    dashboard.close()


@pytest.fixture
def remote(shell: Shell, dashboard: Dashboard, tmp_path: Path) -> Shell:
    """A shell whose selected stack `remote` is on the stand-in's cluster."""
    token = tmp_path / "token"
    token.write_text(TOKEN + "\n")
    ray = {"address": dashboard.url, "tokenFile": str(token), "serviceUrl": "http://127.0.0.1:1"}
    base = {"model": "rehearsal-qwen3-moe", "platform": "cpu", "target": "ray", "scenario": "rehearsal"}
    shell.write_stack("remote", topology="1p1d", ray=ray, **base)
    assert shell.run("pulumi stack select --create remote").ok
    return shell


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    cluster = Cluster()
    yield cluster
    cluster.close()


@pytest.fixture
def user(shell: Shell, cluster: Cluster, tmp_path: Path) -> User:
    return User(shell, cluster, tmp_path / "token")
