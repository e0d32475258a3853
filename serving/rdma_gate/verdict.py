"""Whether one run of the gate proves RDMA between two nodes. What is unknown, empty, cut off or contradictory fails."""

import math
from collections.abc import Iterator

from serving.rdma_gate.causes import probable_cause
from serving.rdma_gate.floor import mib_to_gbps
from serving.rdma_gate.gate_run import CHECKS, DeviceLanes, Finding, GateRun, Side, SideName, Verdict
from serving.rdma_gate.path_checks import asked_reads, check_path, gpu_direct, reads
from serving.rdma_gate.ucx_lanes import Lane
from serving.rdma_gate.ucx_perftest import PROBLEM_KINDS, PerftestLog, parse_perftest
from serving.rdma_gate.ucx_tables import ProtocolLog, parse_protocols

# UCX gives NICs of equal speed equal shares; the least that a NIC may carry is half of that (a choice: room for
# retransmits, wire-up and counters that are read a little late).
_LEAST_OF_EQUAL_SHARE = 0.5


def judge(run: GateRun) -> Verdict:
    """The verdict on one run. Raises ValueError for a run that nothing could fail: no devices, or no floor."""
    if not run.devices or not run.floor > 0 or run.message_size < 1 or run.iterations < 1:
        raise ValueError("a run needs devices, messages, their size and a floor above 0")
    client, server = parse_perftest(run.client.log), parse_perftest(run.server.log)
    protocols = parse_protocols(run.client.log), parse_protocols(run.server.log)
    direct = gpu_direct(run, protocols)
    findings = _unique(
        *_check_nodes(run),
        *_check_problems(client, server),
        *_check_end("client", run.client, client),
        *_check_end("server", run.server, server),
        *_check_settings(run, client, server),
        *check_path(run, "client", protocols[0]),
        *check_path(run, "server", protocols[1]),
        *_check_counters(run, client),
        *_check_figures(run, client),
    )
    bandwidth = client.finals[-1].bandwidth if client.finals else None
    devices = _devices(run, protocols[0])
    lanes = tuple(str(lane) for side in protocols for lane in _lanes(side))
    return Verdict(
        outcome="fail" if findings else "pass",
        reason=_reason(run, next(iter(findings), None), len(findings), devices, bandwidth),
        findings=findings,
        devices=devices,
        bandwidth_mib_s=bandwidth,
        bandwidth_gbps=None if bandwidth is None else mib_to_gbps(bandwidth),
        gpu_direct=direct,
        cause=probable_cause(run, client, server, lanes, direct) if findings else None,
    )


def _check_nodes(run: GateRun) -> Iterator[Finding]:
    if not run.client.node or not run.server.node:
        yield Finding("nodes", None, "it is not known on which nodes the two pods ran")
    elif run.client.node == run.server.node:
        yield Finding("nodes", None, f"both pods ran on {run.client.node}")


def _check_problems(client: PerftestLog, server: PerftestLog) -> Iterator[Finding]:
    """Those of a known kind first: what UCX writes after them follows from them."""
    for kind in PROBLEM_KINDS:
        for name, log in _sides(client, server):
            for problem in log.problems:
                if problem.kind == kind:
                    yield Finding("problem", name, problem.text)


def _check_end(name: SideName, side: Side, log: PerftestLog) -> Iterator[Finding]:
    if side.exit_code is None:
        yield Finding("exit", name, "did not end by itself")
    elif side.exit_code != 0:
        yield Finding("exit", name, f"exit code {side.exit_code}")
    if log.exit_code is None:
        text = "the log does not end with `exit code N`: it is cut off" if side.log else "empty log"
        yield Finding("log", name, text)
    elif log.exit_code != side.exit_code:
        yield Finding("log", name, f"the log ends with exit code {log.exit_code}, the container with {side.exit_code}")


def _check_settings(run: GateRun, client: PerftestLog, server: PerftestLog) -> Iterator[Finding]:
    asked = {"Send memory": run.memory, "Recv memory": run.memory, "Message size": str(run.message_size)}
    for key, wanted in asked.items():
        if (said := server.header.get(key)) != wanted:
            yield Finding("settings", "server", f"{key.lower()} is {said or 'not told'}, {wanted} was asked for")
    if not server.header.get("Test", "").startswith("get "):
        yield Finding("settings", "server", f"test is {server.header.get('Test', 'not told')!r}, ucp_get was asked for")
    if run.emulation_off:
        for name, log in _sides(client, server):
            if log.environment.get("UCX_PROTO_EMULATION_ENABLE") not in ("n", "no", "off", "0"):
                yield Finding("settings", name, "UCX_PROTO_EMULATION_ENABLE is not n")


def _check_figures(run: GateRun, client: PerftestLog) -> Iterator[Finding]:
    if len(client.finals) != 1:
        yield Finding("figures", "client", f"{len(client.finals) or 'no'} final figures")
        return
    bandwidth = client.finals[0].bandwidth
    gbps = mib_to_gbps(bandwidth)
    if (ran := client.finals[0].iterations) != run.iterations:
        yield Finding("figures", "client", f"final figures of {ran} iterations, {run.iterations} were asked for")
    if bandwidth < run.floor:
        text = f"{bandwidth:,.0f} MiB/s ({gbps:.1f} Gb/s) is below the floor of {run.floor:,.0f} MiB/s"
        yield Finding("bandwidth", "client", text)
    if run.line_rate is not None and gbps > run.line_rate:
        yield Finding("bandwidth", "client", f"{gbps:.1f} Gb/s is more than the line rate of {run.line_rate:g} Gb/s")


def _check_counters(run: GateRun, client: PerftestLog) -> Iterator[Finding]:
    if run.rdma_bytes is None:
        return
    iterations = client.finals[-1].iterations if client.finals else 0
    moved = iterations * run.message_size
    least = _LEAST_OF_EQUAL_SHARE * moved / len(run.devices)
    for device in run.devices:
        counted = run.rdma_bytes.get(device, 0)
        if not counted or counted < least:
            yield Finding(
                "share", "client", f"{device} received {counted:,} bytes by RDMA, at least {least:,.0f} expected"
            )
    total = sum(run.rdma_bytes.get(device, 0) for device in run.devices)
    if total < moved:
        yield Finding("share", "client", f"{total:,} bytes came by RDMA, {moved:,} were read")


def _sides(client: PerftestLog, server: PerftestLog) -> tuple[tuple[SideName, PerftestLog], ...]:
    return (("client", client), ("server", server))


def _unique(*findings: Finding) -> tuple[Finding, ...]:
    """Each once, the most telling check first."""
    return tuple(sorted(dict.fromkeys(findings), key=lambda finding: CHECKS.index(finding.check)))


def _lanes(protocols: ProtocolLog) -> Iterator[Lane]:
    for table in reads(protocols):
        for row in table.rows:
            yield from row.lanes.lanes
    for endpoint in protocols.endpoints:
        for lanes in endpoint.features.values():
            yield from lanes


def _devices(run: GateRun, protocols: ProtocolLog) -> tuple[DeviceLanes, ...]:
    rows = [row for table in asked_reads(run, protocols) if (row := table.row_for(math.inf))]
    used = list(rows[-1].lanes.lanes) if rows else []
    names = (*run.devices, *(lane.device for lane in used if lane.device not in run.devices))
    return tuple(
        DeviceLanes(
            device=name,
            lanes=tuple(str(lane) for lane in used if lane.device == name),
            share=sum(lane.share for lane in used if lane.device == name) or None,
            bytes=None if run.rdma_bytes is None else run.rdma_bytes.get(name, 0),
        )
        for name in dict.fromkeys(names)
    )


def _reason(
    run: GateRun, first: Finding | None, count: int, devices: tuple[DeviceLanes, ...], bandwidth: float | None
) -> str:
    if first is not None:
        return f"{first} (and {count - 1} more)" if count > 1 else str(first)
    lanes = ", ".join(lane for device in devices for lane in device.lanes)
    counted = "" if run.rdma_bytes is None else f", bytes counted on all {len(run.devices)} devices"
    figure = "" if bandwidth is None else f", {bandwidth:,.0f} MiB/s ({mib_to_gbps(bandwidth):.1f} Gb/s)"
    return f"{run.memory} memory by zero-copy over {lanes}{counted}{figure}"
