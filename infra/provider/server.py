"""gRPC side of the `pd` provider: Pulumi's ResourceProvider service over the resources of this package."""

import os
import signal
import sys
import traceback
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from threading import Event, Lock
from typing import Any

import grpc
from google.protobuf import empty_pb2, json_format, struct_pb2
from pulumi.runtime.proto import (
    engine_pb2,
    engine_pb2_grpc,
    plugin_pb2,
    provider_pb2,
    provider_pb2_grpc,
    status_pb2,
)

from infra.provider.resource import (
    Interrupted,
    Operation,
    PartlyMade,
    PartlyUpdated,
    Properties,
    Resource,
    ResourceError,
)

UNKNOWN = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"  # Pulumi's wire value of an output not known yet (sdk rpc.UNKNOWN)
_MAX_MESSAGE = 400 * 1024 * 1024  # bytes; the limit Pulumi's own SDKs use
_CLEAN_UP_SECONDS = 60
_PARENT_SECONDS = 2.0


def _properties(message: struct_pb2.Struct) -> Properties:
    """Protobuf struct -> JSON values. Its numbers are all doubles: whole ones become ints again."""

    def whole(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: whole(item) for key, item in value.items()}
        if isinstance(value, list):
            return [whole(item) for item in value]
        return int(value) if isinstance(value, float) and value.is_integer() else value

    return whole(json_format.MessageToDict(message))


def _struct(properties: Properties) -> struct_pb2.Struct:
    message = struct_pb2.Struct()
    message.update(properties)
    return message


class _InitFailedStatus(grpc.Status):
    """Tells the engine to record these properties, mark the resource as not ready, and see to it next time."""

    def __init__(self, resource_id: str, reason: str, inputs: Properties, outputs: Properties) -> None:
        self.code, self.details = grpc.StatusCode.UNKNOWN, reason
        detail = provider_pb2.ErrorResourceInitFailed(
            id=resource_id, properties=_struct({**inputs, **outputs}), inputs=_struct(inputs), reasons=[reason]
        )
        status = status_pb2.Status(code=self.code.value[0], message=reason)
        status.details.add().Pack(detail)
        self.trailing_metadata = (("grpc-status-details-bin", status.SerializeToString()),)


def _unknown(value: Any) -> bool:
    if isinstance(value, dict):
        return any(_unknown(item) for item in value.values())
    if isinstance(value, list):
        return any(_unknown(item) for item in value)
    return value == UNKNOWN


def _one_line_errors(method: Any) -> Any:
    """Report a ResourceError as the message it carries. Anything else is a bug, and only its type is told: texts that
    are not ours quote values, such as a header with its token.
    """

    @wraps(method)
    def call(self: "ProviderServer", request: Any, context: grpc.ServicerContext) -> Any:
        try:
            with self.running():
                return method(self, request, context)
        except PartlyUpdated as error:
            if error.interrupted:
                self.take_back()
            context.abort_with_status(_InitFailedStatus(request.id, str(error), error.inputs, {}))
        except PartlyMade as error:
            context.abort_with_status(_InitFailedStatus(error.resource_id, str(error), error.inputs, error.outputs))
        except ResourceError as error:
            if isinstance(error, Interrupted):
                self.take_back()
            context.abort(grpc.StatusCode.UNKNOWN, str(error))
        except grpc.RpcError:
            raise
        except Exception as error:
            if context.code() is not None:  # type: ignore[attr-defined]  # aborted above
                raise
            print(_where(error), file=sys.stderr, flush=True)  # into the engine's log, which a terminal does not show
            frame = traceback.extract_tb(error.__traceback__)[-1]
            place = f"{Path(frame.filename).name} line {frame.lineno}"
            bug = f"pd provider: {type(error).__name__} in {method.__name__} ({place}), a fault of this program"
            context.abort(grpc.StatusCode.INTERNAL, f"{bug}; please report it")

    return call


def _where(error: BaseException) -> str:
    """A traceback without the texts of the exceptions: users see it, and paste it into reports."""
    before = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    frames = "".join(traceback.format_tb(error.__traceback__))
    return (f"{_where(before)}\n\nand then\n\n" if before else "") + f"{frames}{type(error).__name__}"


class ProviderServer(provider_pb2_grpc.ResourceProviderServicer):
    """Routes the engine's requests to `resources`: type token -> implementation."""

    def __init__(self, resources: dict[str, Resource], engine: str) -> None:
        self._resources = resources
        self._engine = engine_pb2_grpc.EngineStub(grpc.insecure_channel(engine)) if engine else None
        self._cancelled = Event()
        self._running = 0
        self._lock = Lock()

    @contextmanager
    def running(self) -> Iterator[None]:
        """Counts the operations under way."""
        with self._lock:
            self._running += 1
        try:
            yield
        finally:
            with self._lock:
                self._running -= 1

    def take_back(self) -> None:
        """The user gave up on this update: end what it started."""
        for resource in self._resources.values():
            resource.interrupted()

    def _resource(self, urn: str) -> Resource:
        return self._resources[urn.split("::")[-2].split("$")[-1]]

    def _operation(self, urn: str) -> Operation:
        def log(message: str, severity: Any, *, lasting: bool) -> None:
            if self._engine is not None:
                request = engine_pb2.LogRequest(severity=severity, message=message, urn=urn, ephemeral=not lasting)
                self._engine.Log(request)

        return Operation(
            lambda message, lasting: log(message, engine_pb2.INFO, lasting=lasting),
            self._cancelled,
            warning=lambda message: log(message, engine_pb2.WARNING, lasting=True),
        )

    def Handshake(self, request: Any, context: Any) -> Any:
        return provider_pb2.ProviderHandshakeResponse()

    def GetPluginInfo(self, request: Any, context: Any) -> Any:
        return plugin_pb2.PluginInfo(version="0.1.0")

    def CheckConfig(self, request: Any, context: Any) -> Any:
        return provider_pb2.CheckResponse(inputs=request.news)

    def DiffConfig(self, request: Any, context: Any) -> Any:
        return provider_pb2.DiffResponse(changes=provider_pb2.DiffResponse.DIFF_NONE)

    def Configure(self, request: Any, context: Any) -> Any:
        return provider_pb2.ConfigureResponse(supportsPreview=True)

    @_one_line_errors
    def Check(self, request: Any, context: Any) -> Any:
        olds, news = _properties(request.olds), _properties(request.news)
        failures = [] if _unknown(news) else self._resource(request.urn).check(olds, news)
        return provider_pb2.CheckResponse(
            inputs=request.news,
            # Without a property: the engine would print its whole value in front of the reason.
            failures=[provider_pb2.CheckFailure(reason=reason) for reason in failures],
        )

    @_one_line_errors
    def Diff(self, request: Any, context: Any) -> Any:
        olds, news = _properties(request.olds), _properties(request.news)
        changed = True if _unknown(news) else self._resource(request.urn).changed(olds, news)
        some, none = provider_pb2.DiffResponse.DIFF_SOME, provider_pb2.DiffResponse.DIFF_NONE
        replaces = changed if isinstance(changed, list) else []
        return provider_pb2.DiffResponse(
            changes=some if changed else none, replaces=replaces, deleteBeforeReplace=bool(replaces)
        )

    @_one_line_errors
    def Create(self, request: Any, context: Any) -> Any:
        inputs, resource = _properties(request.properties), self._resource(request.urn)
        if request.preview:
            known = {} if _unknown(inputs) else resource.planned(inputs)
            return provider_pb2.CreateResponse(properties=_struct({**inputs, **known}))
        resource_id, outputs = resource.create(inputs, self._operation(request.urn))
        return provider_pb2.CreateResponse(id=resource_id, properties=_struct({**inputs, **outputs}))

    @_one_line_errors
    def Read(self, request: Any, context: Any) -> Any:
        found = self._resource(request.urn).read(request.id, _properties(request.properties))
        if found is None:
            return provider_pb2.ReadResponse()
        inputs, outputs = found
        return provider_pb2.ReadResponse(
            id=request.id, inputs=_struct(inputs), properties=_struct({**outputs, **inputs})
        )

    @_one_line_errors
    def Update(self, request: Any, context: Any) -> Any:
        olds, news = _properties(request.olds), _properties(request.news)
        resource = self._resource(request.urn)
        if request.preview:
            known = {} if _unknown(news) else resource.planned(news)
            return provider_pb2.UpdateResponse(properties=_struct({**news, **known}))
        outputs = resource.update(request.id, olds, news, self._operation(request.urn))
        return provider_pb2.UpdateResponse(properties=_struct({**news, **outputs}))

    @_one_line_errors
    def Delete(self, request: Any, context: Any) -> Any:
        operation = self._operation(request.urn)
        self._resource(request.urn).delete(request.id, _properties(request.properties), operation)
        return empty_pb2.Empty()

    def Cancel(self, request: Any, context: Any) -> Any:
        """Ctrl-C: running operations stop waiting and what this update started is taken back.

        The engine says the same at the end of every update, when nothing runs: then there is nothing to interrupt.
        It wants the answer within 5 s, so the work is done by the operations that are interrupted.
        """
        with self._lock:
            if self._running:
                self._cancelled.set()
        return empty_pb2.Empty()


def serve(resources: dict[str, Resource], engine: str) -> None:
    """Serve until the engine ends this process; the port is the first line of stdout, as plugins must."""
    limits = [("grpc.max_receive_message_length", _MAX_MESSAGE), ("grpc.max_send_message_length", _MAX_MESSAGE)]
    server = grpc.server(ThreadPoolExecutor(max_workers=8), options=limits)
    provider_pb2_grpc.add_ResourceProviderServicer_to_server(ProviderServer(resources, engine), server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    ended = Event()
    # Before the port is told: a signal may follow at once.
    signal.signal(signal.SIGINT, lambda *_: ended.set())
    print(port, flush=True)
    parent = os.getppid()
    while os.getppid() == parent:  # an engine that was killed cannot end its plugins
        if ended.wait(_PARENT_SECONDS):  # the engine is done with this plugin; what still runs is a clean-up
            server.stop(grace=_CLEAN_UP_SECONDS).wait()
            return
