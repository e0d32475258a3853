"""What the stand-ins for Pulumi providers have in common: the first calls of an engine, errors, and being a process."""

# ruff: noqa: N802 - methods have the names of the gRPC service

import json
import os
import signal
import traceback
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import wraps
from threading import Event
from typing import Any

import grpc
from google.protobuf import empty_pb2
from pulumi.runtime.proto import plugin_pb2, provider_pb2, provider_pb2_grpc

_MAX_MESSAGE = 400 * 1024 * 1024  # bytes; the limit Pulumi's own SDKs use
_PARENT_SECONDS = 2.0


class StandInError(Exception):
    """The provider refuses: a line for whoever runs Pulumi."""


def one_line_errors(method: Callable[..., Any]) -> Callable[..., Any]:
    """Report a refusal as the message it carries. Anything else is a bug of the stand-in and names itself as one."""

    @wraps(method)
    def call(self: "StandIn", request: Any, context: grpc.ServicerContext) -> Any:
        try:
            return method(self, request, context)
        except StandInError as error:
            context.abort(grpc.StatusCode.UNKNOWN, f"{method.__name__.lower()}: {error}")
        except Exception as error:
            traceback.print_exc()  # into the engine's log
            context.abort(grpc.StatusCode.INTERNAL, f"stand-in: {type(error).__name__}: {error} (please report)")

    return call


class StandIn(provider_pb2_grpc.ResourceProviderServicer):
    """Pulumi's ResourceProvider service under the name and version of the published provider."""

    def __init__(self, name: str, version: str) -> None:
        self._name, self._version = name, version
        self.cancelled = Event()

    def Handshake(self, request: Any, context: Any) -> Any:
        return provider_pb2.ProviderHandshakeResponse(accept_secrets=True)

    def GetPluginInfo(self, request: Any, context: Any) -> Any:
        return plugin_pb2.PluginInfo(version=self._version)

    def GetSchema(self, request: Any, context: Any) -> Any:
        return provider_pb2.GetSchemaResponse(schema=json.dumps({"name": self._name, "version": self._version}))

    def CheckConfig(self, request: Any, context: Any) -> Any:
        return provider_pb2.CheckResponse(inputs=request.news)

    def DiffConfig(self, request: Any, context: Any) -> Any:
        return provider_pb2.DiffResponse(changes=provider_pb2.DiffResponse.DIFF_NONE)

    def Configure(self, request: Any, context: Any) -> Any:
        return provider_pb2.ConfigureResponse(acceptSecrets=True, supportsPreview=True)

    def Cancel(self, request: Any, context: Any) -> Any:
        """Ctrl-C, and the end of every update: whoever waits stops waiting."""
        self.cancelled.set()
        return empty_pb2.Empty()


def serve(provider: StandIn) -> None:
    """Serve until the engine ends this process; the port is the first line of stdout, as plugins must."""
    ended, parent = Event(), os.getppid()
    # A handler, since a KeyboardInterrupt can strike anywhere, also before the loop below.
    signal.signal(signal.SIGINT, lambda *_: ended.set())
    limits = [("grpc.max_receive_message_length", _MAX_MESSAGE), ("grpc.max_send_message_length", _MAX_MESSAGE)]
    server = grpc.server(ThreadPoolExecutor(max_workers=8), options=limits)
    provider_pb2_grpc.add_ResourceProviderServicer_to_server(provider, server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    print(port, flush=True)
    while not ended.wait(_PARENT_SECONDS) and os.getppid() == parent:
        pass  # an engine that was killed cannot end its plugins
    server.stop(grace=None)
