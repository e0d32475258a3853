"""What the engine is told when a resource of our provider fails in a way that nobody foresaw."""

import re
from concurrent.futures import ThreadPoolExecutor
from typing import Any, cast

import grpc
import pytest
from pulumi.runtime.proto import provider_pb2, provider_pb2_grpc

from infra.provider.resource import Resource, ResourceError
from infra.provider.server import ProviderServer


class _Failing:
    def __init__(self, error: Exception) -> None:
        self._error = error

    def check(self, olds: Any, news: Any) -> list[str]:
        try:
            return [{}["sec" + "ret"]]
        except KeyError:
            raise self._error  # noqa: B904  # with that as its context


def _told(error: Exception) -> str:
    server = grpc.server(ThreadPoolExecutor(1))
    resources = {"pd:index:Failing": cast(Resource, _Failing(error))}
    provider_pb2_grpc.add_ResourceProviderServicer_to_server(ProviderServer(resources, ""), server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    request = provider_pb2.CheckRequest(urn="urn:pulumi:s::p::pd:index:Failing::n")
    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        stub = provider_pb2_grpc.ResourceProviderStub(channel)
        with pytest.raises(grpc.RpcError) as caught:
            stub.Check(request, timeout=10)
    server.stop(None).wait(10)
    return cast(Any, caught.value).details()


def test_a_foreseen_failure_is_told_in_its_own_words() -> None:
    assert _told(ResourceError("set the key")) == "set the key"


def test_an_unforeseen_failure_tells_no_text_of_others(capfd: pytest.CaptureFixture[str]) -> None:
    line = _told(ValueError("Invalid header value b'Bearer secret'"))
    place = r"\(test_provider_server\.py line \d+\)"
    assert re.fullmatch(rf"pd provider: ValueError in Check {place}, a fault of this program; please report it", line)
    shown = capfd.readouterr().err
    assert "in check" in shown
    assert shown.index("KeyError") < shown.index("and then") < shown.rindex("ValueError")
    assert "secret" not in line + shown
