"""Bad input stops the real engine with one line before anything is made."""

import json
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import new_shell
from tests.engine.stand_in_dashboard import Dashboard
from tests.shell import Shell, assert_one_clear_line

STACK = "local-pd-1p1d"


def assert_nothing_made(shell: Shell) -> None:
    state = json.loads(shell.run("pulumi stack export").text)
    made = [resource["type"] for resource in state["deployment"].get("resources", [])]
    assert [kind for kind in made if kind.startswith("pd:")] == []


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    """A local stack that is selected and that no test may deploy: what each sets wrongly, it puts right again."""
    shell = new_shell(tmp_path_factory.mktemp("local"))
    assert shell.run(f"pulumi stack select --create {STACK}").ok
    yield shell
    assert_nothing_made(shell)


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({"topologie": "1p1d"}, ("pd-mi325x:topologie", "unknown key", "topology")),
        ({"engine": {"all": {"max_num_seq": 8}}}, ("engine.all.max_num_seq", "unknown key", "max_num_seqs")),
        ({"engine": {"all": {"vllm": {"kv_transfer_config": {}}}}}, ("engine.*.vllm.kv_transfer_config", "topology")),
        ({"engine": {"aggregated": {"max_num_seqs": 8}}}, ("engine.aggregated", "no aggregated replica")),
        ({"cluster": {"provider": "local", "port": 1}}, ("cluster.port", "unknown key", "portBase")),
        ({"cluster": {"provider": "laptop"}}, ("cluster.provider", "'laptop'", "doks")),
        ({"cluster": {}}, ("cluster.provider", "is required", "doks")),
        ({"weights": {"mode": "hub"}}, ("weights.revision", "needs a commit")),
        ({"monitoring": "none"}, ("pd-mi325x:monitoring", "target: kubernetes")),
        ({"topology": "1p0d"}, ("pd-mi325x:topology", "no decode replica")),
        ({"topology": "agg-٣"}, ("pd-mi325x:topology", "agg-3")),
        ({"topology": "agg-7"}, ("pd-mi325x:topology", "more than 6")),
        ({"cluster": "local"}, ("pd-mi325x:cluster", "is an object", "'local'")),
        ({"topology": "two"}, ("pd-mi325x:topology", "2p1d", "agg-3")),
        ({"model": "qwen4"}, ("pd-mi325x:model", "unknown model", "rehearsal-qwen3-moe")),
        ({"model": None}, ("pd-mi325x:model", "is required")),
        ({"cluster": None}, ("pd-mi325x:target", "cluster.provider", "ray.address")),
        ({"scenario": "rehearse"}, ("pd-mi325x:scenario", "unknown scenario", "rehearsal")),
        ({"platform": "rocm"}, ("pd-mi325x:platform", "CPU replicas only")),
        ({"engine": {"all": {"max_num_seqs": True}}}, ("engine.all.max_num_seqs", "integer")),
        ({"platform": "tpu"}, ("pd-mi325x:platform", "rocm")),
    ],
)
def test_a_setting_that_cannot_work(local: Shell, config: dict[str, object], words: tuple[str, ...]) -> None:
    file = local.checkout / f"Pulumi.{STACK}.yaml"
    shipped = file.read_text()
    local.write_stack(STACK, **config)
    try:
        assert_one_clear_line(local.run("pulumi up --yes"), *words)
    finally:
        file.write_text(shipped)


def test_a_port_in_use(shell: Shell, port_base: int) -> None:
    shell.write_stack(STACK, cluster={"provider": "local", "portBase": port_base})
    assert shell.run(f"pulumi stack select --create {STACK}").ok
    with socket.create_server(("127.0.0.1", port_base + 1)):
        assert_one_clear_line(shell.run("pulumi up --yes"), f"{port_base + 1} (dashboard)", "cluster.portBase")
    assert_nothing_made(shell)


def test_an_address_where_nothing_listens(remote: Shell, dashboard: Dashboard) -> None:
    dashboard.close()
    assert_one_clear_line(remote.run("pulumi up --yes"), dashboard.url, "cannot be reached", "refused", "ray.address")
    assert_nothing_made(remote)


def test_a_wrong_token(remote: Shell, dashboard: Dashboard, tmp_path: Path) -> None:
    ray = {"address": dashboard.url, "tokenFile": f"{tmp_path}/other", "serviceUrl": "http://127.0.0.1:1"}
    remote.write_stack("remote", ray=ray)
    assert_one_clear_line(remote.run("pulumi up --yes"), "ray.tokenFile", "cannot read")
    (remote.checkout.parent / "other").write_text("secret-one\nsecret-two\n")
    two = remote.run("pulumi up --yes")
    assert_one_clear_line(two, "ray.tokenFile", "one token")
    assert "secret-" not in two.text
    (remote.checkout.parent / "other").write_text("not-the-token")
    assert_one_clear_line(remote.run("pulumi up --yes"), dashboard.url, "refused the token", "ray.tokenFile")
    assert_nothing_made(remote)
    assert dashboard.puts == 0


@pytest.mark.parametrize("content", ["X-Key: [secret-header", "secret-header", "X-Key: 7"])
def test_a_headers_file_that_is_none_is_not_quoted(remote: Shell, dashboard: Dashboard, content: str) -> None:
    file = remote.checkout / "headers.yaml"
    file.write_text(content)
    ray = {"address": dashboard.url, "headersFile": str(file), "serviceUrl": "http://127.0.0.1:1"}
    remote.write_stack("remote", ray=ray)
    up = remote.run("pulumi up --yes")
    assert_one_clear_line(up, "ray.headersFile", "headers.yaml")
    assert "secret-header" not in up.text


@pytest.mark.parametrize(
    ("address", "word"),
    [("http://[::1", "URL"), ("http://", "URL"), ("http://a:99999", "65535"), ("http://me:secret-word@a", "password")],
)
def test_an_address_that_is_none(remote: Shell, address: str, word: str) -> None:
    remote.write_stack("remote", ray={"address": address, "serviceUrl": "http://127.0.0.1:1"})
    up = remote.run("pulumi up --yes")
    assert_one_clear_line(up, "ray.address", word)
    assert "secret-word" not in up.text


def test_a_token_file_that_is_no_text(remote: Shell, dashboard: Dashboard, tmp_path: Path) -> None:
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    ray = {"address": dashboard.url, "tokenFile": str(tmp_path / "binary"), "serviceUrl": "http://127.0.0.1:1"}
    remote.write_stack("remote", ray=ray)
    assert_one_clear_line(remote.run("pulumi up --yes"), "ray.tokenFile", "not a text file")


def test_an_address_that_is_no_dashboard(remote: Shell, dashboard: Dashboard) -> None:
    dashboard.page = "<html>please log in</html>"
    assert_one_clear_line(remote.run("pulumi up --yes"), dashboard.url, "Ray dashboard", "ray.address")


def test_another_ray_version(remote: Shell, dashboard: Dashboard) -> None:
    dashboard.version = "2.9.9"
    assert_one_clear_line(remote.run("pulumi up --yes"), dashboard.url, "2.9.9", "versions.toml")
    assert_nothing_made(remote)
    assert dashboard.puts == 0


def test_an_operators_chart_that_is_none(shell: Shell) -> None:
    images = {name: f"registry.example/{name}@sha256:{'1' * 64}" for name in ("engine", "benchmark")}
    shell.write_stack("pd-2p1d", cluster={"provider": "existing"}, images=images)
    assert shell.run("pulumi stack select --create pd-2p1d").ok
    for command, chart in (("preview", "./infra"), ("up --yes --skip-preview", "oci://127.0.0.1:1/x")):
        shell.write_stack("pd-2p1d", rayOperator={"chart": chart})
        assert_one_clear_line(shell.run(f"pulumi {command}"), "pd-mi325x:rayOperator.chart: ")
    assert_nothing_made(shell)


def test_a_stack_whose_name_looks_like_an_option(shell: Shell) -> None:
    shell.write_stack("-x", cluster={"provider": "doks"}, nodePool={"nodes": 4})
    assert shell.run("pulumi stack init --stack=-x").ok
    assert_one_clear_line(shell.run("pulumi preview --stack=-x"), "stack: the name '-x' is no Kubernetes label")
