"""NIC bytes from node-exporter's text: two collectors, several nodes, and whatever may be missing."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from stand_in_data import target_data
from stand_in_server import StandIn

from benchmarks import preflight
from benchmarks.errors import BenchmarkError
from benchmarks.metrics import Counters, parse
from benchmarks.nic_counters import NicBytes, exporters, increase, read_nics
from benchmarks.target import Target

NICS = [f"fabric{number}" for number in range(8)]


def ethtool(received: int, transmitted: int, kernel: int = 0) -> str:
    """What the ethtool collector shows of eight virtual functions, and of a NIC without RDMA (no type is told)."""
    lines = [
        f'node_ethtool_{name}{{device="{nic}"}} {value:g}'
        for nic in NICS
        for name, value in (
            ("received_vport_rdma_unicast_bytes", received),
            ("transmitted_vport_rdma_unicast_bytes", transmitted),
            ("received_vport_unicast_bytes", kernel),
            ("transmitted_vport_unicast_bytes", 0),
            ("received_vport_rdma_unicast_packets", 7),
        )
    ]
    return "\n".join(["# TYPE node_ethtool_received_bytes_total untyped", *lines, ""])


def netdev(**devices: int) -> str:
    lines = [f'node_network_receive_bytes_total{{device="{name}"}} {value}' for name, value in devices.items()]
    return "\n".join(["# TYPE node_network_receive_bytes_total counter", *lines, ""])


def infiniband(received: int, transmitted: int) -> str:
    lines = [
        f'node_infiniband_port_data_{way}_bytes_total{{device="mlx5_{number}",port="1"}} {value}'
        for number in range(8)
        for way, value in (("received", received), ("transmitted", transmitted))
    ]
    return "\n".join([*lines, ""])


class Exporter(ThreadingHTTPServer):
    """A node-exporter that shows `text`."""

    daemon_threads = True

    def __init__(self, text: str) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.text = text
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/metrics"


class _Handler(BaseHTTPRequestHandler):
    server: Exporter  # pyright: ignore[reportIncompatibleVariableOverride]

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""

    def do_GET(self) -> None:
        payload = self.server.text.encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(payload)))
        self.end_headers()
        self.wfile.write(payload)


@pytest.fixture
def nodes() -> Iterator[list[Exporter]]:
    """A prefill and a decode node, before any KV."""
    both = [Exporter(ethtool(10, 10) + netdev(eth0=5, lo=10**9, bridge0=0, pod0=9)), Exporter(ethtool(20, 20))]
    yield both
    for node in both:
        node.shutdown()
        node.server_close()


def target_of(nodes: list[Exporter]) -> Target:
    return Target.model_validate(target_data("http://127.0.0.1:9", node_exporter_urls=[node.url for node in nodes]))


def between(before: str, after: str) -> NicBytes:
    return increase(at("a", before), at("a", after))


def at(node: str, text: str) -> Counters:
    return Counters({(name, labels | {("node", node)}): value for (name, labels), value in parse(text).values.items()})


def test_the_same_device_names_on_two_nodes_are_two_nics_each(nodes: list[Exporter], tmp_path: Path) -> None:
    target = target_of(nodes)
    before = read_nics(target, tmp_path / "nics-before")
    nodes[0].text = ethtool(11, 1010) + netdev(eth0=405, lo=2 * 10**9, bridge0=305, pod1=900)
    nodes[1].text = ethtool(1020, 21, kernel=3)
    found = increase(before, read_nics(target, tmp_path / "nics-after"))
    assert found.problem is None
    assert len(found.nics) == 16
    assert found.rdma_received == 8 * 1001
    assert found.kernel_received == 8 * 3
    assert found.rdma_share == pytest.approx(1001 / 1004)
    # Not loopback, the bridge that counts the same bytes, or a pod's device that is new.
    assert sorted(found.received_elsewhere.values()) == [0, 400]
    assert found.most_uneven(0) is not None
    kept = (tmp_path / "nics-after-1.prom").read_text(encoding="utf-8")
    assert "rdma_unicast_bytes" in kept
    assert "rdma_unicast_packets" not in kept


def test_the_infiniband_collector_alone_knows_no_kernel_bytes() -> None:
    found = between(infiniband(0, 0), infiniband(500, 1))
    assert (found.rdma_received, found.kernel_received, found.rdma_share) == (4000, None, None)
    assert found.nics[0].device == "mlx5_0/1"


def test_what_both_collectors_show_is_counted_once() -> None:
    assert between(ethtool(0, 0) + infiniband(0, 0), ethtool(500, 1) + infiniband(500, 1)).rdma_received == 4000


def test_the_most_uneven_node_is_found() -> None:
    some = ethtool(100, 0)
    fifth = 'received_vport_rdma_unicast_bytes{device="fabric5"} '
    lame = some.replace(f"{fifth}100", f"{fifth}25")
    uneven = between(ethtool(0, 0), lame).most_uneven(0)
    assert uneven is not None
    assert (uneven[0], uneven[1].device) == (0.25, "fabric5")
    assert between(ethtool(0, 0), some).most_uneven(800) is None  # as much as is ignored


@pytest.mark.parametrize(
    ("before", "after", "problem"),
    [
        (ethtool(9, 9), ethtool(1, 9), "began anew"),
        (ethtool(9, 9), netdev(eth0=9), "began anew"),
        (ethtool(9, 9), ethtool(9, 9).replace(" 9", " NaN", 1), "says NaN or infinite of node_ethtool_received_vport"),
        (ethtool(9, 9), ethtool(9, 9).replace(" 9", " +Inf", 1), "says NaN or infinite of node_ethtool_received_vport"),
        (netdev(eth0=9), netdev(eth0=9).replace(" 9", " NaN"), "says NaN or infinite of node_network_receive_bytes"),
        (netdev(eth0=9), netdev(eth0=9) + ethtool(1, 1), "NICs came up during the rate on a"),
        (netdev(eth0=9), netdev(eth0=10), "no node-exporter shows an RDMA NIC; run it with --collector.ethtool"),
    ],
)
def test_what_was_not_measured_says_why(before: str, after: str, problem: str) -> None:
    assert problem in (between(before, after).problem or "")


def test_no_exporter_is_asked_where_none_is_named() -> None:
    assert exporters(Target.model_validate(target_data("http://127.0.0.1:9"))) == []


def test_an_exporter_that_does_not_answer_is_found_before_any_load(service: StandIn) -> None:
    data = target_data(service.url, node_exporter_urls=["http://127.0.0.1:9/metrics"])
    with pytest.raises(BenchmarkError, match=r"^node-exporter http://127.0.0.1:9/metrics does not answer"):
        preflight.check_service(Target.model_validate(data))
    named = target_data(service.url, node_exporter_service="http://nowhere.invalid:9100/metrics")
    with pytest.raises(BenchmarkError, match=r"^node-exporter service nowhere.invalid has no address"):
        preflight.check_service(Target.model_validate(named))
