"""Whether the chart of KubeRay's operator is where a stack file says, found out before anything is registered."""

import tarfile
from pathlib import Path
from typing import Any

import pulumi
import pytest
import requests
from registrations import program_registers, stack

from infra import operator_chart
from infra.kubernetes_program import deploy_node_pool, deploy_on_kubernetes
from infra.operator_chart import check_chart
from serving.cluster import NodePoolStack
from serving.errors import ConfigError
from serving.kubernetes_settings import RayOperator
from serving.stack import parse_settings
from serving.versions import versions

PINNED = versions()["kuberay"]["version"]
INDEX = f"entries:\n  kuberay-operator: [{{version: {PINNED}}}]\n  ray-cluster: [{{version: 0.1.0}}]\n"


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that Pulumi.yaml would be in, with what is a chart and what is none."""
    monkeypatch.setattr(pulumi, "get_root_directory", lambda: str(tmp_path))
    for folder in ("chart", "infra", "charts/mine"):
        (tmp_path / folder).mkdir(parents=True)
    for folder in ("chart", "charts/mine"):
        (tmp_path / folder / "Chart.yaml").write_text("name: operator\n")
    (tmp_path / "file").write_text("x")
    (tmp_path / "no.tgz").write_text("x")
    for name, content in (("packed.tgz", "chart"), ("other.tgz", "infra")):
        with tarfile.open(tmp_path / name, "w:gz") as archive:
            archive.add(tmp_path / content, content)
    packed = (tmp_path / "packed.tgz").read_bytes()
    (tmp_path / "half.tgz").write_bytes(packed[: len(packed) // 2])
    return tmp_path


def answer(monkeypatch: pytest.MonkeyPatch, status: int = 200, text: str = "", error: Exception | None = None) -> Any:
    """What any server answers; returns the list of the URLs that are asked for."""
    asked: list[str] = []

    def get(url: str, **_: Any) -> requests.Response:
        asked.append(url)
        if error:
            raise error
        made = requests.Response()
        made.status_code, made._content = status, text.encode()
        return made

    monkeypatch.setattr(operator_chart.requests, "get", get)
    return asked


def refusal(chart: str) -> str:
    with pytest.raises(ConfigError) as refused:
        check_chart(RayOperator(chart=chart))
    assert refused.value.key == "pd-mi325x:rayOperator.chart"
    line = str(refused.value)
    assert refused.value.fix
    assert "\n" not in line
    return line


@pytest.mark.parametrize("chart", ["chart", "./chart", "charts/mine", "packed.tgz", "./packed.tgz", "../{}/chart"])
def test_a_local_chart(project: Path, chart: str) -> None:
    check_chart(RayOperator(chart=chart.format(project.name)))
    check_chart(RayOperator(chart=str(project / "chart")))


@pytest.mark.parametrize(
    ("chart", "words"),
    [
        ("/nonexistent", "there is no folder /nonexistent"),
        ("./nonexistent", "/nonexistent; name the folder"),
        ("charts/theirs", "there is no folder"),
        ("gone.tgz", "there is no folder"),
        ("infra", "holds no Chart.yaml"),
        ("./infra", "holds no Chart.yaml"),
        (".", "holds no Chart.yaml"),
        ("/etc/passwd", "file /etc/passwd is no packed chart"),
        ("file", "is no packed chart"),
        ("no.tgz", "is no packed chart"),
        ("half.tgz", "is no packed chart"),
        ("other.tgz", "is no packed chart"),
        (f"./{'a' * 300}", "cannot be read: File name too long"),
    ],
)
def test_a_local_chart_that_is_none(chart: str, words: str) -> None:
    assert words in refusal(chart)


def test_a_chart_of_the_public_repository(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = answer(monkeypatch, text=INDEX)
    check_chart(RayOperator())
    check_chart(RayOperator(chart="kuberay-operator"))
    assert asked == [f"{versions()['kuberay']['chart_repository']}index.yaml"] * 2
    assert "has no chart 'kuberay'; set it to a local folder" in refusal("kuberay")
    assert f"has no chart 'ray-cluster' of version {PINNED}" in refusal("ray-cluster")


@pytest.mark.parametrize(
    "text", ["", "<html>log in</html>", "entries: [", "entries: 7", "entries: {kuberay-operator: 7}"]
)
def test_a_page_that_is_no_index(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    answer(monkeypatch, text=text)
    assert "has no index of charts" in refusal("")


def test_servers_that_do_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    answer(monkeypatch, error=requests.ConnectTimeout())
    assert "KubeRay's chart repository https://ray-project" in (line := refusal(""))
    assert "cannot be reached (ConnectTimeout); " in line
    assert "preinstalled" in line
    answer(monkeypatch, 503)
    assert "answered 503" in refusal("")
    assert "registry r.example answered 503" in refusal("oci://r.example/a/b")
    monkeypatch.undo()
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    assert "registry 127.0.0.1:1 cannot be reached (ConnectionError)" in refusal("oci://127.0.0.1:1/x")


def test_a_chart_in_a_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = answer(monkeypatch)
    check_chart(RayOperator(chart="oci://r.example:5000/team/operator"))
    assert asked == [f"https://r.example:5000/v2/team/operator/manifests/{PINNED}"]
    answer(monkeypatch, 404)
    assert f"registry r.example has no a/b of version {PINNED}" in refusal("oci://r.example/a/b")


@pytest.mark.parametrize("given", [{"status": 401}, {"status": 403}, {"error": requests.exceptions.SSLError()}])
def test_what_only_the_provider_can_tell(monkeypatch: pytest.MonkeyPatch, given: Any) -> None:
    answer(monkeypatch, **given)
    check_chart(RayOperator(chart="oci://r.example/a/b"))


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("pool", [False, True])
def test_nothing_is_registered_before(monkeypatch: pytest.MonkeyPatch, pool: bool) -> None:
    monkeypatch.setenv("DIGITALOCEAN_TOKEN", "a token")
    chart = {"rayOperator": {"chart": "./infra"}}
    nodes = parse_settings({"cluster": {"provider": "doks"}, "nodePool": {"nodes": 4}, **chart})
    assert isinstance(nodes, NodePoolStack)
    refused: list[str] = []

    def program() -> None:
        with pytest.raises(ConfigError) as error:
            deploy_node_pool(nodes) if pool else deploy_on_kubernetes(stack(namespace="pd-space", **chart))
        refused.append(error.value.key)

    assert program_registers(program) == []
    assert refused == ["pd-mi325x:rayOperator.chart"]
