"""What the Dockerfiles are built with: every argument, from versions.toml and nowhere else."""

import copy
import re
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from serving import image_arguments
from serving.versions import versions
from tests.shell import ROOT
from tools.image_builder import arguments as images
from tools.toolchain.errors import ToolchainError

DOCKERFILES = {path.name.removesuffix(".Dockerfile"): path for path in (ROOT / "docker").glob("*.Dockerfile")}
DIGEST = "sha256:" + "ab" * 32


def declared(dockerfile: Path) -> set[str]:
    return set(re.findall(r"^ARG (\w+)", dockerfile.read_text(), re.MULTILINE))


def changed(monkeypatch: pytest.MonkeyPatch, *keys: str) -> dict[str, set[str]]:
    """Image -> arguments that are others when the value at `keys` of versions.toml is another."""
    before, data = image_arguments.build_arguments(), copy.deepcopy(versions())
    table: Any = data
    for key in keys[:-1]:
        table = table[key]
    table[keys[-1]] = "another"
    with monkeypatch.context() as patch:
        patch.setattr(image_arguments, "versions", lambda: data)
        after = image_arguments.build_arguments()
    differ = {name: {key for key in args if args[key] != before[name][key]} for name, args in after.items()}
    return {name: keys for name, keys in differ.items() if keys}


def test_each_dockerfile_gets_the_arguments_it_declares_and_no_others() -> None:
    arguments = image_arguments.build_arguments()
    assert arguments.keys() == DOCKERFILES.keys()
    for name, dockerfile in DOCKERFILES.items():
        assert declared(dockerfile) == arguments[name].keys(), name
        assert all(arguments[name].values()), f"{name}: an empty argument"


def test_no_dockerfile_has_a_default_or_a_version_of_its_own() -> None:
    for dockerfile in DOCKERFILES.values():
        assert not re.findall(r"^ARG \w+=", dockerfile.read_text(), re.MULTILINE)
        assert not re.findall(r"[=@:v]\d+\.\d+", dockerfile.read_text())


@pytest.mark.parametrize(
    ("keys", "differs"),
    [
        (("platform", "rocm", "ucx"), {"rocm": {"UCX_COMMIT"}}),
        (("platform", "rocm", "rixl"), {"rocm": {"RIXL_COMMIT"}}),
        (("platform", "rocm", "triton"), {"rocm": {"TRITON_COMMIT"}}),
        (("platform", "rocm", "vllm"), {"rocm": {"VLLM_VERSION"}}),
        (("platform", "rocm", "ray"), {"rocm": {"RAY_VERSION"}}),
        (("platform", "cuda", "ray"), {}),
        (("libtcmalloc", "package"), {"cpu": {"TCMALLOC_PACKAGE"}}),
        (("image", "rocm_build", "reference"), {"rocm": {"BUILD_IMAGE"}}),
        (("image", "python", "reference"), {name: {"PYTHON_IMAGE"} for name in ("rocm", "cpu", "benchmark")}),
        (("python", "version"), {name: {"PYTHON_VERSION"} for name in ("rocm", "cpu", "benchmark")}),
    ],
)
def test_a_changed_version_changes_what_is_built_of_it_and_nothing_else(
    keys: tuple[str, ...], differs: dict[str, set[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert changed(monkeypatch, *keys) == differs


def test_a_known_digest_is_what_the_base_is_taken_by(monkeypatch: pytest.MonkeyPatch) -> None:
    data = copy.deepcopy(versions())
    data["image"]["python"] |= {"reference": "docker.io/library/python:tag", "digest": DIGEST}
    monkeypatch.setattr(image_arguments, "versions", lambda: data)
    assert image_arguments.reference("python") == f"docker.io/library/python:tag@{DIGEST}"


def test_a_digest_is_written_into_its_own_table_and_nowhere_else() -> None:
    text = (ROOT / "versions.toml").read_text()
    written = images.with_digest(text, "rocm_build", DIGEST)
    differ = [line for line, old in zip(written.splitlines(), text.splitlines(), strict=True) if line != old]
    assert differ == [f'digest = "{DIGEST}"']
    assert written.index(DIGEST) > written.index("[image.rocm_build]")
    with pytest.raises(ToolchainError, match="no digest line"):
        images.with_digest(text, "another", DIGEST)


class _Registry(BaseHTTPRequestHandler):
    """A registry that wants a token for everything and has one tag."""

    def do_GET(self) -> None:
        if self.path.startswith("/token"):
            assert "scope=repository:team/base:pull" in self.path.replace("%3A", ":").replace("%2F", "/")
            return self._answer(200, b'{"token": "pull"}')
        if self.headers.get("Authorization") != "Bearer pull":
            realm = f"http://127.0.0.1:{self.server.server_port}/token"  # pyright: ignore[reportAttributeAccessIssue]
            challenge = f'Bearer realm="{realm}",service="it",scope="repository:team/base:pull"'
            return self._answer(401, b"", {"WWW-Authenticate": challenge})
        if self.path == "/v2/team/base/manifests/1":
            assert "image.index" in self.headers["Accept"]
            return self._answer(200, b"{}", {"Docker-Content-Digest": DIGEST})
        return self._answer(404, b"{}")

    def _answer(self, code: int, body: bytes, headers: dict[str, str] | None = None) -> None:
        self.send_response(code)
        for key, value in (headers or {}).items():
            self.send_header(key, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> Any:
    server = HTTPServer(("127.0.0.1", 0), _Registry)
    Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setitem(images._REGISTRIES, "registry.test", f"http://127.0.0.1:{server.server_port}")
    yield
    server.shutdown()


@pytest.mark.usefixtures("registry")
def test_a_registry_is_asked_as_registries_want_it() -> None:
    assert images.digest("registry.test/team/base:1") == DIGEST
    with pytest.raises(ToolchainError, match=r"no digest for registry\.test/team/base:2"):
        images.digest("registry.test/team/base:2")


def test_a_registry_that_is_not_there_is_one_line() -> None:
    with pytest.raises(ToolchainError, match=r"localhost:9 does not answer for localhost:9/a:1"):
        images.digest("localhost:9/a:1")
