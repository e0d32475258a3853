"""What the gate says of a pair of nodes: a small record for each run, and a line for each that failed."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass

from serving.rdma_gate.floor import BITS_PER_MIB, MemoryKind, default_floor, mib_to_gbps
from serving.rdma_gate.framing import FramedRun, framed_runs
from serving.rdma_gate.gate_run import GateRun, Side
from serving.rdma_gate.pairs import Pair
from serving.rdma_gate.run import ITERATIONS, MESSAGE_SIZE, runs_of
from serving.rdma_gate.verdict import judge

_MISSING = FramedRun("")


@dataclass(frozen=True)
class Terms:
    """What is asked of every run. devices: `mlx5_0:1`. link_gbps: of the slowest NIC, if known. floor_gbps: of one NIC,
    if given; one of the two is. hardware: those of the devices that the inspector found to be no software; None where
    it has not looked."""

    devices: tuple[str, ...]
    memory: MemoryKind
    link_gbps: float | None = None
    floor_gbps: float | None = None
    hardware: frozenset[str] | None = None

    def floor(self, devices: int) -> float:
        """MiB/s of a run over so many of them. Several are not to be slower than one has to be."""
        if not self.floor_gbps:
            return default_floor(self.link_gbps or 0.0, devices, self.memory)
        together = default_floor(2 * self.floor_gbps, devices, self.memory) if devices > 1 else 0.0
        return max(together, self.floor_gbps * 1e9 / BITS_PER_MIB)


@dataclass(frozen=True)
class RunResult:
    """One run, for the stack's state. pair: its number. nic: or `all`. lane: what carried it, the first of several.

    gbps, floor_gbps: 10^9 bits/s. gpu_direct: direct, staged or unknown. why: nothing for a run that passed, else
    reason, cause and fix.
    """

    pair: int
    client: str
    server: str
    nic: str
    passed: bool
    lane: str
    gbps: float | None
    floor_gbps: float
    gpu_direct: str
    why: str = ""
    cause: str = ""

    def __str__(self) -> str:
        way = f"{self.client} reads from {self.server} over {self.nic}"
        lane = f"lane {self.lane}" if self.lane else "no lane"
        gbps = f"{self.gbps:.0f} Gb/s" if self.gbps is not None else "no bandwidth"
        return f"{way}: {self.why or 'passed'} ({lane}, GPU memory {self.gpu_direct}, {gbps})"

    def as_dict(self) -> dict[str, object]:
        return asdict(self)


def results_of(
    pair: Pair, terms: Terms, client: str, server: str, nodes: Mapping[str, str] | None = None
) -> list[RunResult]:
    """The verdicts on one pair. client, server: whole logs of the two pods. nodes: side -> the node its pod ran on."""
    ran_on = nodes or {"client": pair.client, "server": pair.server}
    logs = framed_runs(client), framed_runs(server)
    found: list[RunResult] = []
    for run in runs_of(terms.devices, "host"):  # its GPUs are no matter here
        read, served = (framed.get(run.name, _MISSING) for framed in logs)
        floor = terms.floor(len(run.devices))
        verdict = judge(
            GateRun(
                devices=run.devices,
                memory=terms.memory,
                message_size=MESSAGE_SIZE,
                iterations=ITERATIONS,
                client=Side(read.log, read.exit_code, ran_on["client"]),
                server=Side(served.log, served.exit_code, ran_on["server"]),
                floor=floor,
                rdma_bytes=read.rdma_bytes,
                line_rate=terms.link_gbps and terms.link_gbps * len(run.devices),
                hardware=terms.hardware,
            )
        )
        lanes = [lane for device in verdict.devices for lane in device.lanes]
        found.append(
            RunResult(
                pair=pair.number,
                client=pair.client,
                server=pair.server,
                nic=run.name,
                passed=verdict.outcome == "pass",
                lane=lanes[0] if lanes else "",
                gbps=None if verdict.bandwidth_gbps is None else round(verdict.bandwidth_gbps, 1),
                floor_gbps=round(mib_to_gbps(floor), 1),
                gpu_direct=verdict.gpu_direct,
                why="" if verdict.outcome == "pass" else verdict.reason,
                cause=f"{verdict.cause.what}; {verdict.cause.fix}" if verdict.cause else "",
            )
        )
    return found


def not_run(pair: Pair, terms: Terms, why: str) -> RunResult:
    """A pair whose pods did not get as far as a run, or were not started."""
    floor = round(mib_to_gbps(terms.floor(1)), 1) if terms.devices else 0.0
    return RunResult(pair.number, pair.client, pair.server, "any NIC", False, "", None, floor, "unknown", why)
