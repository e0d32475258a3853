"""Metrics endpoints behind one name, as a headless Kubernetes service gives them: an address for each Ray node."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from stand_in_client import ask
from stand_in_data import aggregated, target_data
from stand_in_server import StandIn

from benchmarks import preflight
from benchmarks.errors import BenchmarkError
from benchmarks.evidence import ANSWERED, WATCHED, prove_kv
from benchmarks.metrics import Settling, endpoints, scrape_target, settle
from benchmarks.replicas import replica_changes
from benchmarks.target import Target

NAME = "llm-metrics.llm.svc"


class Node(ThreadingHTTPServer):
    """The metrics endpoint of one node: one engine, which has answered `answered` requests."""

    daemon_threads = True

    def __init__(self, address: str, port: int, replica: str, answered: int) -> None:
        super().__init__((address, port), _Handler)
        self.replica = replica
        self.answered = answered
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()

    def close(self) -> None:
        """The node is gone: nothing answers at its address."""
        self.shutdown()
        self.server_close()


class _Handler(BaseHTTPRequestHandler):
    server: Node  # pyright: ignore[reportIncompatibleVariableOverride]

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""

    def do_GET(self) -> None:
        sample = f'{ANSWERED}{{ReplicaId="{self.server.replica}"}} {self.server.answered}'
        payload = f"# TYPE {ANSWERED} counter\n{sample}\n".encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(payload)))
        self.end_headers()
        self.wfile.write(payload)


class Names:
    """A resolver that knows one name; `addresses` are those of the pods that are ready, `asked` counts look-ups."""

    def __init__(self) -> None:
        self.addresses: list[str] = []
        self.asked = 0

    def getaddrinfo(self, host: str, port: int, *rest: Any, **options: Any) -> list[Any]:
        if host != NAME:
            return _GENUINE(host, port, *rest, **options)
        self.asked += 1
        if not self.addresses:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        # A resolver gives them in any order.
        return [
            (socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port))
            for address in reversed(self.addresses)
        ]


_GENUINE = socket.getaddrinfo


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> Names:
    known = Names()
    monkeypatch.setattr(socket, "getaddrinfo", known.getaddrinfo)
    return known


@pytest.fixture
def nodes(names: Names) -> Iterator[list[Node]]:
    """Two nodes at 127.0.0.11 and 127.0.0.12, on one port, as every pod has it."""
    first = Node("127.0.0.11", 0, "a", 5)
    both = [first, Node("127.0.0.12", first.server_address[1], "b", 7)]
    names.addresses = ["127.0.0.11", "127.0.0.12"]
    yield both
    for node in both:
        node.close()


def target_of(nodes: list[Node]) -> Target:
    url = f"http://{NAME}:{nodes[0].server_address[1]}/metrics"
    return Target.model_validate(aggregated("http://127.0.0.1:9", metrics_urls=[], metrics_service=url))


def test_every_address_is_an_endpoint(nodes: list[Node]) -> None:
    target = target_of(nodes)
    port = nodes[0].server_address[1]
    assert endpoints(target) == [f"http://127.0.0.11:{port}/metrics", f"http://127.0.0.12:{port}/metrics"]
    assert scrape_target(target).total(ANSWERED) == 12


def test_a_pod_with_two_addresses_is_one_endpoint(nodes: list[Node], names: Names) -> None:
    names.addresses += ["fd00::11", "fd00::12"]
    assert len(endpoints(target_of(nodes))) == 2
    names.addresses = ["fd00::11"]
    assert endpoints(target_of(nodes))[0].startswith("http://[fd00::11]:")


def test_named_endpoints_are_not_looked_up(names: Names) -> None:
    target = Target.model_validate(target_data("http://127.0.0.1:9"))
    assert endpoints(target) == target.metrics_urls
    assert names.asked == 0


def test_a_restarted_pod_is_found_at_its_new_address_and_told_from_its_predecessor(
    nodes: list[Node], names: Names
) -> None:
    target = target_of(nodes)
    before = scrape_target(target)
    nodes[1].close()
    nodes[1] = Node("127.0.0.13", nodes[0].server_address[1], "c", 2)
    names.addresses = ["127.0.0.11", "127.0.0.13"]
    delta = scrape_target(target).since(before)
    assert delta.total(ANSWERED) == 2
    assert any("is gone" in change and change.endswith(": b") for change in replica_changes(delta, 2))


def test_a_pod_that_has_not_been_restarted_shows_nothing(nodes: list[Node]) -> None:
    before = scrape_target(target_of(nodes))
    nodes[0].answered += 3
    assert replica_changes(scrape_target(target_of(nodes)).since(before), 2) == []


def test_a_pod_that_dies_while_counters_settle_is_waited_out(nodes: list[Node], names: Names) -> None:
    """Its address stays in the name for a while, and then a scrape fails; the next look-up no longer has it."""
    target = target_of(nodes)
    nodes[1].close()
    said: list[str] = []

    def say(text: str) -> None:
        said.append(text)
        names.addresses = ["127.0.0.11"]

    quick = Settling(quiet_s=0.2, confirm_s=0.1, limit_s=5, poll_s=0.05)
    settled = settle(lambda: scrape_target(target), WATCHED, lambda _: False, say, quick)
    assert settled.total(ANSWERED) == 5
    assert "trying again" in said[0]


def test_a_scrape_of_fewer_endpoints_leaves_no_file_of_an_earlier_one(
    nodes: list[Node], names: Names, tmp_path: Path
) -> None:
    (tmp_path / "other-1.prom").write_text("", encoding="utf-8")
    scrape_target(target_of(nodes), tmp_path / "after")
    names.addresses = ["127.0.0.12"]
    scrape_target(target_of(nodes), tmp_path / "after")
    assert sorted(file.name for file in tmp_path.iterdir()) == ["after-0.prom", "other-1.prom"]
    assert 'ReplicaId="b"' in (tmp_path / "after-0.prom").read_text(encoding="utf-8")


def test_a_name_without_an_address_is_one_line(service: StandIn, names: Names) -> None:
    data = target_data(service.url, metrics_urls=[], metrics_service=f"http://{NAME}:8080/metrics")
    with pytest.raises(BenchmarkError, match=rf"^metrics service {NAME} has no address .*are the service's pods ready"):
        preflight.check_service(Target.model_validate(data))


def test_kv_is_proven_from_a_service(service: StandIn, names: Names) -> None:
    names.addresses = ["127.0.0.1"]
    port = service.server_address[1]
    data = target_data(service.url, metrics_urls=[], metrics_service=f"http://{NAME}:{port}/metrics")
    target = Target.model_validate(json.loads(json.dumps(data)))
    before = scrape_target(target)
    sent = ask(target.url, (10, 40))
    assert prove_kv(target, sent, scrape_target(target).since(before)).verdict == "proven"
