"""Which NICs carried the data: all that were asked for and no other, by UCX's table and by counters."""

import dataclasses

import pytest
from rdma_gate_logs import ITERATIONS, MESSAGE_SIZE, NICS, gate_run

from serving.rdma_gate.verdict import judge


def test_the_device_table_tells_lanes_shares_and_bytes() -> None:
    first, *_, last = judge(gate_run(NICS)).devices
    assert (first.lanes, first.share) == (("rc_mlx5/mlx5_0:1/path0",), 13)
    assert (last.lanes, last.share) == ((), None)  # UCX has no room to name it
    assert first.bytes == last.bytes == MESSAGE_SIZE * ITERATIONS / 8
    unused = judge(gate_run(NICS[:2], ["rc_mlx5/mlx5_0:1", "rc_mlx5/mlx5_9:1"])).devices
    assert [(device.device, device.lanes) for device in unused] == [
        ("mlx5_0:1", ("rc_mlx5/mlx5_0:1",)),
        ("mlx5_1:1", ()),
        ("mlx5_9:1", ("rc_mlx5/mlx5_9:1",)),
    ]


@pytest.mark.parametrize(
    ("devices", "lanes", "named"),
    [
        (NICS[:1], ["rc_verbs/rxe0:1"], "rc_verbs/rxe0:1 is software RoCE"),
        (NICS[:1], ["rc_verbs/siw0:1"], "rc_verbs/siw0:1 is software RoCE"),
        (NICS[:1], ["ud_verbs/mlx5_0:1"], "ud_verbs/mlx5_0:1 is no RDMA lane"),
        (NICS[:1], ["rc_mlx5/mlx5_1:1"], "mlx5_1:1 is in use, mlx5_0:1 was asked for"),
        (NICS[:1], ["rc_mlx5/mlx5_0:1", "rc_mlx5/mlx5_1:1"], "rc_mlx5/mlx5_1:1 is in use"),
        (NICS[:4], [f"rc_mlx5/{nic}" for nic in NICS[:3]], "mlx5_3:1 is not in use"),
        (NICS[:4], [*(f"rc_mlx5/{nic}" for nic in NICS[:3]), "tcp/fabric3"], "tcp/fabric3 is no RDMA lane"),
        (NICS, [*(f"rc_mlx5/{nic}" for nic in NICS[:2]), "tcp/fabric2"], "tcp/fabric2 is no RDMA lane"),
    ],
)
def test_wrong_lanes_are_named(devices: tuple[str, ...], lanes: list[str], named: str) -> None:
    verdict = judge(gate_run(devices, lanes))
    assert verdict.outcome == "fail"
    assert any(named in str(finding) for finding in verdict.findings)


@pytest.mark.parametrize("place", range(8))
def test_one_of_eight_nics_on_tcp_is_named(place: int) -> None:
    """Also where UCX's table has no room for it: then the counters of the NIC that it replaced stand still."""
    lanes = [f"rc_mlx5/{nic}/path0" for nic in NICS]
    lanes[place] = f"tcp/fabric{place}"
    run = gate_run(NICS, lanes)
    assert run.rdma_bytes is not None
    verdict = judge(dataclasses.replace(run, rdma_bytes={**run.rdma_bytes, NICS[place]: 0}))
    assert verdict.outcome == "fail"
    text = " ".join(str(finding) for finding in verdict.findings)
    assert f"{NICS[place]} received 0 bytes by RDMA" in text
    assert (f"tcp/fabric{place} is no RDMA lane" in text) is (place < 4)


@pytest.mark.parametrize("missing", range(8))
def test_seven_of_eight_nics_in_use_fails_and_names_the_missing_one(missing: int) -> None:
    used = [nic for nic in NICS if nic != NICS[missing]]
    run = gate_run(NICS, [f"rc_mlx5/{nic}/path0" for nic in used])
    counted = dict.fromkeys(used, MESSAGE_SIZE * ITERATIONS // 7 + 1)
    verdict = judge(dataclasses.replace(run, rdma_bytes=counted))
    assert verdict.outcome == "fail"
    assert f"{NICS[missing]} received 0 bytes by RDMA" in verdict.reason


def test_without_counters_eight_nics_cannot_pass_and_the_shares_tell_how_many_there_are() -> None:
    whole = judge(gate_run(NICS, counted=False))
    assert whole.outcome == "fail"
    assert "nothing shows that mlx5_4:1, mlx5_5:1, mlx5_6:1, mlx5_7:1 is in use" in whole.reason
    assert "13% a lane is 7 to 8 lanes" in whole.reason


def test_a_nic_that_hardly_carried_anything_fails() -> None:
    counted = dict.fromkeys(NICS, MESSAGE_SIZE * ITERATIONS // 4) | {NICS[5]: 4096}
    verdict = judge(dataclasses.replace(gate_run(NICS), rdma_bytes=counted))
    assert f"{NICS[5]} received 4,096 bytes by RDMA, at least 1,677,721,600 expected" in verdict.reason


def test_bytes_that_went_elsewhere_fail() -> None:
    run = gate_run(NICS)
    assert run.rdma_bytes is not None
    less = {nic: count * 6 // 10 for nic, count in run.rdma_bytes.items()}
    assert "bytes came by RDMA" in judge(dataclasses.replace(run, rdma_bytes=less)).reason
    assert judge(dataclasses.replace(run, rdma_bytes={})).outcome == "fail"
