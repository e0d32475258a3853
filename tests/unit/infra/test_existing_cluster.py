"""Which kubeconfig and which context of it a stack on somebody else's cluster records."""

import os
from pathlib import Path

import pulumi
import pytest
import yaml
from stand_in_api_server import Kubeconfig

from infra.cluster.access import KubernetesAccess
from infra.cluster.existing import existing_cluster
from serving.cluster import ExistingCluster
from serving.errors import ConfigError


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kubeconfig: Kubeconfig) -> Path:
    """A project's folder with a kubeconfig `config` in it; the program runs in its folder infra."""
    (tmp_path / "config").write_text(yaml.safe_dump(kubeconfig()))
    (tmp_path / "infra").mkdir()
    monkeypatch.chdir(tmp_path / "infra")
    monkeypatch.setattr(pulumi, "get_root_directory", lambda: str(tmp_path))
    return tmp_path


def access(**settings: str) -> KubernetesAccess:
    return existing_cluster(ExistingCluster.model_validate({"provider": "existing", **settings}))


def test_the_context_of_today_is_recorded(project: Path) -> None:
    found = access(kubeconfig="config")
    assert (found.context, found.context_chosen) == ("here", False)
    chosen = access(kubeconfig="config", context="there")
    assert (chosen.context, chosen.context_chosen) == ("there", True)


def test_a_path_is_counted_from_the_project(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = str(project / "config")
    assert access(kubeconfig="config").kubeconfig == expected
    assert access(kubeconfig=expected).kubeconfig == expected
    monkeypatch.setenv("KUBECONFIG", "config")
    assert access().kubeconfig == expected
    monkeypatch.setenv("HOME", str(project))
    assert access(kubeconfig="~/config").kubeconfig == expected


@pytest.mark.parametrize("content", [None, "secret: [", "users: []\n"])
def test_a_file_that_does_not_do_is_for_the_pre_flight_to_name(project: Path, content: str | None) -> None:
    if content is None:
        (project / "config").unlink()
    else:
        (project / "config").write_text(content)
    assert access(kubeconfig="config").context == ""


def test_a_list_of_files_is_refused(project: Path) -> None:
    with pytest.raises(ConfigError, match="list of files"):
        access(kubeconfig=f"a{os.pathsep}b")
