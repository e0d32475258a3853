"""BuildKit for the session, base images and sources that stand in for what cannot be fetched, and built images."""

import functools
import json
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from serving.image_arguments import reference
from tests.images import stand_in_sources
from tools.image_builder import arguments as images
from tools.image_builder import base_image, buildkit
from tools.image_builder.buildkit import BuildKit
from tools.image_builder.oci_layout import with_layer


@dataclass
class Build:
    """Bakes targets on stand-in base images. `contexts`: stage or image -> folder or layout in its place."""

    daemon: BuildKit
    folder: Path
    contexts: dict[str, str]
    arguments: dict[str, Any]
    _built: dict[str, Path] = field(default_factory=dict)

    def run(
        self, target: str, *, contexts: Mapping[str, str] | None = None, arguments: Mapping[str, str] | None = None
    ) -> "tuple[subprocess.CompletedProcess[str], Path]":
        """Bake one target, with these arguments changed; what it said, and where its image would be."""
        file = self.folder / f"arguments-{len(list(self.folder.iterdir()))}.json"
        bake = json.loads(json.dumps(self.arguments))
        inherited = bake["target"][f"{target}-arguments"]
        inherited["args"] |= arguments or {}
        inherited["contexts"] = {**self.contexts, **(contexts or {})}
        file.write_text(json.dumps(bake))
        layout = file.with_suffix(".layout")
        return self.daemon.bake(target, arguments=file, layout=layout), layout

    def image(self, target: str) -> Path:
        """The layout of a target that has to build; built once."""
        if target not in self._built:
            done, layout = self.run(target)
            assert done.returncode == 0, done.stderr[-8000:]
            self._built[target] = layout
        return self._built[target]


@pytest.fixture(scope="session")
def daemon() -> Iterator[BuildKit]:
    with buildkit.running() as daemon:
        yield daemon


@pytest.fixture(scope="session")
def build(daemon: BuildKit, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Build]:
    """All that a build takes from elsewhere is a stand-in, but for Debian's packages and the Python index."""
    folder = tmp_path_factory.mktemp("images")
    base, rocm = base_image.base_layout(), folder / "rocm-base"
    with_layer(base, stand_in_sources.rocm_root(folder), rocm)
    sources = {
        "ucx-source": stand_in_sources.source("ucx", folder, REVISION=stand_in_sources.ROCM["ucx"][:7]),
        "rixl-source": stand_in_sources.source("rixl", folder),
        "triton-source": stand_in_sources.source("triton", folder, VERSION=stand_in_sources.TRITON),
    }
    contexts = {
        _familiar(reference("python")): f"oci-layout://{base}:latest",
        _familiar(reference("rocm_build")): f"oci-layout://{rocm}:latest",
        **{name: str(place) for name, place in sources.items()},
    }
    arguments = images.bake_file()
    handler = functools.partial(_Quiet, directory=str(stand_in_sources.wheel_index(folder)))
    index = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    Thread(target=index.serve_forever, daemon=True).start()
    arguments["target"]["rocm-arguments"]["args"]["VLLM_INDEX"] = f"http://127.0.0.1:{index.server_port}"
    yield Build(daemon, folder, contexts, arguments)
    index.shutdown()


def _familiar(reference: str) -> str:
    """As BuildKit looks a named context up: without the host that is meant anyway."""
    return reference.removeprefix("docker.io/").removeprefix("library/")


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        pass
