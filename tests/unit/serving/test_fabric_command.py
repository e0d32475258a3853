"""`python -m serving.fabric inspect`, as a person and as a program use it."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from fabric_tree import build

from serving.fabric.__main__ import main
from serving.fabric.node import NodeFabric
from serving.stack_files import ROOT


def inspect(root: Path, capsys: pytest.CaptureFixture[str], *options: str) -> tuple[int, str]:
    capsys.readouterr()
    code = main(["inspect", "--root", str(root), *options])
    said = capsys.readouterr()
    assert said.err == ""
    return code, said.out


@pytest.mark.parametrize("format", ["table", "json"])
@pytest.mark.parametrize(
    ("name", "code"),
    [("oci_mi300x", 0), ("pollara", 0), ("no_rdma", 3), ("doks", 4), ("nic_down", 4), ("soft_roce", 4)],
)
def test_exit_code(tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, code: int, format: str) -> None:
    assert inspect(build(tmp_path, name), capsys, "--format", format)[0] == code


def test_a_fabric_is_usable_once_the_kernel_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    on = {"CONFIG_PCI_P2PDMA": True, "CONFIG_DMABUF_MOVE_NOTIFY": True}
    root = build(tmp_path, "doks", lambda node: node.update(config=on))
    assert inspect(root, capsys)[0] == 0
    assert inspect(root, capsys, "--ucx", "1.19.0")[0] == 4


def test_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, said = inspect(build(tmp_path, "doks"), capsys, "--format", "json")
    found = json.loads(said)
    assert found["environment"]["UCX_IB_GID_INDEX"] == "3"
    assert found["choice"]["net_devices"][0] == "mlx5_2:1"
    assert found["choice"]["findings"][0]["code"] == "gpu-direct"
    assert NodeFabric.model_validate(found).devices[1].ports[0].gids[3].address == "fd02:0:0:58::1"


def test_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = inspect(build(tmp_path, "nic_down"), capsys)[1].splitlines()
    row = next(line for line in lines if "mlx5_2:1" in line)
    for cell in ("mlx5 vf", "fabric0", "vrf-fabric0", "ACTIVE", "400", "4096 of 4200", "3 fd02:0:0:58::1", "yes"):
        assert cell in row
    assert any("mlx5_5:1" in line and "port is DOWN (Disabled)" in line for line in lines)
    assert "UCX_NET_DEVICES=mlx5_2:1,mlx5_3:1,mlx5_4:1,mlx5_6:1,mlx5_7:1,mlx5_8:1,mlx5_9:1" in lines
    assert "UCX_IB_GID_INDEX=3" in lines
    (error,) = [line for line in lines if line.startswith("error: ")]
    assert "mlx5_5:1 (fabric3)" in error
    assert lines[-1] == "fabric: not usable, 7 NICs"


def test_help_has_the_exit_codes(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", "--help"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    for promise in ("0 the fabric is usable", "3 the node has no RDMA device at all", "4 it has some, but none"):
        assert promise in said


def test_a_wrong_root_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", "--root", str(tmp_path)]) == 1
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.splitlines() == [
        f"error: --root: {tmp_path} has no sys folder; name the root of a node's file system"
    ]


def test_this_machine_as_typed() -> None:
    """Without RDMA it says so plainly, and nothing that a node with RDMA would be told; with it, as many devices."""
    command = [sys.executable, "-m", "serving.fabric", "inspect"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    told = subprocess.run([*command, "--format", "json"], cwd=ROOT, capture_output=True, text=True, check=False)
    lines, devices = done.stdout.splitlines(), json.loads(told.stdout)["devices"]
    assert (done.stderr, told.stderr, told.returncode) == ("", "", done.returncode)
    there = Path("/sys/class/infiniband")
    if there.exists() and list(there.iterdir()):
        assert done.returncode in (0, 4)
        assert {device["name"] for device in devices} == {place.name for place in there.iterdir()}
        return
    assert done.returncode == 3
    (error,) = [line for line in lines if line.startswith("error: ")]
    assert error.startswith("error: no RDMA device on this node: /sys/class/infiniband has none")
    assert lines[-1] == "fabric: not usable, 0 NICs"
    assert devices == []
