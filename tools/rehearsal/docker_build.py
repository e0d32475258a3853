"""A stand-in for the `docker-build` provider: takes an image's inputs as the SDK has them, and says what became of it.

Nothing is built and nothing is pushed. The digest is of what decides the real one: Dockerfile, stage and arguments. The
files of the build context, which decide it too, are left out. tests/images builds the Dockerfiles for real.
"""

# ruff: noqa: N802 - methods have the names of the gRPC service

import hashlib
import json
from pathlib import Path
from typing import Any

from google.protobuf import empty_pb2
from pulumi.runtime.proto import provider_pb2

from tools.rehearsal.pulumi_wire import UNKNOWN, Properties, struct, values
from tools.rehearsal.stand_in import StandIn, StandInError, one_line_errors, serve
from tools.toolchain.versions import versions

_COMPUTED = ("digest", "ref", "contextHash")


class Provider(StandIn):
    """Knows one kind of resource, docker-build:index:Image."""

    def __init__(self) -> None:
        super().__init__("docker-build", versions()["pulumi_docker_build"]["version"])

    @one_line_errors
    def Check(self, request: Any, context: Any) -> Any:
        from pulumi_docker_build import ImageArgs

        from tools.rehearsal.sdk_types import wrong_types

        news = values(request.news)
        failures = [provider_pb2.CheckFailure(reason=problem) for problem in wrong_types(ImageArgs, news)]
        return provider_pb2.CheckResponse(inputs=struct(news), failures=failures)

    @one_line_errors
    def Diff(self, request: Any, context: Any) -> Any:
        olds, news = values(request.old_inputs), values(request.news)
        differ = sorted(key for key in olds.keys() | news.keys() if olds.get(key) != news.get(key))
        some = provider_pb2.DiffResponse.DIFF_SOME if differ else provider_pb2.DiffResponse.DIFF_NONE
        return provider_pb2.DiffResponse(changes=some, diffs=differ)

    @one_line_errors
    def Create(self, request: Any, context: Any) -> Any:
        outputs = _outputs(values(request.properties), preview=request.preview)
        return provider_pb2.CreateResponse(id="" if request.preview else outputs["digest"], properties=struct(outputs))

    @one_line_errors
    def Read(self, request: Any, context: Any) -> Any:
        return provider_pb2.ReadResponse(id=request.id, inputs=request.inputs, properties=request.properties)

    @one_line_errors
    def Update(self, request: Any, context: Any) -> Any:
        return provider_pb2.UpdateResponse(
            properties=struct(_outputs(values(request.news), preview=request.preview)),
        )

    @one_line_errors
    def Delete(self, request: Any, context: Any) -> Any:
        """As the real one: what was pushed stays in its registry."""
        return empty_pb2.Empty()


def _outputs(inputs: Properties, *, preview: bool) -> Properties:
    """An image's outputs; in a preview those that a build gives are not known."""
    dockerfile = Path(inputs["context"]["location"], inputs["dockerfile"]["location"])
    if not dockerfile.is_file():
        raise StandInError(f"open {dockerfile}: no such file or directory")
    if preview:
        return {**inputs, **dict.fromkeys(_COMPUTED, UNKNOWN)}
    decides = [dockerfile.read_text(encoding="utf-8"), inputs.get("target"), inputs.get("buildArgs")]
    digest = f"sha256:{hashlib.sha256(json.dumps(decides, sort_keys=True).encode()).hexdigest()}"
    return {**inputs, "digest": digest, "ref": f"{inputs['tags'][0]}@{digest}", "contextHash": ""}


if __name__ == "__main__":
    serve(Provider())
