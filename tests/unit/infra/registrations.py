"""What a piece of infra registers, seen where Pulumi's engine would see it."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pulumi
from google.protobuf.json_format import MessageToDict
from pulumi.runtime import mocks, rpc

from serving.stack import Stack, parse_stack

BUILT = f"sha256:{'b' * 64}"  # the digest of every image that is built
NAMES = ("pd-test", "pd-space")  # stack, namespace


@dataclass(frozen=True)
class Registration:
    """One resource. wire: the inputs as sent, in which a secret is an object around its value."""

    type: str
    name: str
    inputs: dict[str, Any]
    wire: dict[str, Any]
    depends_on: list[str]
    retained: bool
    create_timeout: str
    transforms: list[Any] = field(default_factory=list)

    @property
    def kind(self) -> str:
        return self.type.rsplit(":", 1)[-1]


class _Monitor(mocks.MockMonitor):
    def __init__(self) -> None:
        super().__init__(_Echo())
        self.seen: list[Registration] = []

    def RegisterResource(self, request: Any) -> Any:  # noqa: N802  gRPC
        if request.type != "pulumi:pulumi:Stack":
            self.seen.append(
                Registration(
                    request.type,
                    request.name,
                    rpc.deserialize_properties(request.object),
                    MessageToDict(request.object),
                    [urn.rsplit("::", 1)[-1] for urn in request.dependencies],
                    request.retainOnDelete,
                    request.customTimeouts.create,
                    mocks._resolve_callbacks(request.transforms),
                )
            )
        return super().RegisterResource(request)


class _Echo(pulumi.runtime.Mocks):
    def new_resource(self, args: pulumi.runtime.MockResourceArgs) -> tuple[str, dict[str, Any]]:
        made = {"ref": f"{args.inputs['tags'][0]}@{BUILT}"} if args.typ == "docker-build:index:Image" else {}
        return f"{args.name}-id", {**args.inputs, **made}

    def call(self, args: pulumi.runtime.MockCallArgs) -> tuple[dict[str, Any], None]:
        return {}, None


def registered(register: Callable[[pulumi.ResourceOptions], list[pulumi.Resource]]) -> list[Registration]:
    """What `register` registers, in order, and that it returns all of it."""
    monitor = _Monitor()
    pulumi.runtime.set_mocks(monitor.mocks, preview=False, monitor=monitor)
    returned: list[pulumi.Resource] = []
    pulumi.runtime.test(lambda: returned.extend(register(pulumi.ResourceOptions())))()
    assert sorted(resource.pulumi_resource_name for resource in returned) == sorted(seen.name for seen in monitor.seen)
    return monitor.seen


def program_registers(program: Callable[[], object]) -> list[Registration]:
    """What a whole program registers, in order."""
    monitor = _Monitor()
    pulumi.runtime.set_mocks(monitor.mocks, preview=False, monitor=monitor)
    pulumi.runtime.test(program)()
    return monitor.seen


def is_secret(value: Any) -> bool:
    """Whether a value of `wire` is kept from every eye: Pulumi encrypts it in the state and hides it on the screen."""
    return isinstance(value, dict) and value.get(rpc._special_sig_key) == rpc._special_secret_sig


def stack(**settings: Any) -> Stack:
    """A stack on somebody else's Kubernetes cluster, with these settings (as a stack file has them) on top."""
    return parse_stack(
        {
            "model": "qwen3-235b-a22b-fp8",
            "topology": "1p1d",
            "scenario": "qwen-16k-1k",
            "cluster": {"provider": "existing"},
            "images": {name: f"registry.example/{name}@sha256:{'1' * 64}" for name in ("engine", "benchmark")},
            **settings,
        }
    )
