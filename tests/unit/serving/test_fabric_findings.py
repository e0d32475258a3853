"""Findings: each on a node that has the fault, and not on one that has not."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fabric_tree import Description, read

from serving.fabric.choose import choose
from serving.fabric.findings import Finding

Change = Callable[[Description], object]


def findings(root: Path, name: str, change: Change = lambda node: None, ucx: str = "") -> dict[str, Finding]:
    found = choose(read(root, name, change), ucx).findings
    assert len({finding.code for finding in found}) == len(found)
    return {finding.code: finding for finding in found}


def put(*path: str, **values: Any) -> Change:
    """Set keys of an entry of the description."""

    def change(node: Description) -> None:
        for key in path:
            node = node[key]
        node.update(values)

    return change


@pytest.mark.parametrize(
    ("change", "severity", "code", "text"),
    [
        (put("rdma", "mlx5_4", state="1: DOWN"), "error", "nic-lost", "mlx5_4:1 (rdma3): port is DOWN"),
        (put("rdma", "mlx5_4", state="1: DOWN"), "warning", "fewer-nics", "7 NICs for 8 GPUs"),
        (put("rdma", "mlx5_4", rate="200 Gb/sec (4X HDR)"), "warning", "rates", "mlx5_4:1 200, the others 400 Gb/s"),
        (put("netdevs", "rdma3", mtu=1500), "warning", "mtu", "mlx5_4:1 (rdma3) 1500"),
        (put(memlock=65536), "warning", "memlock", "may pin 64 KiB"),
        (put(numa_balancing=1), "warning", "numa-balancing", "NUMA balancing is on"),
        (put(cmdline="quiet"), "note", "iommu", "no iommu=pt"),
        (put("config", CONFIG_PCI_P2PDMA=False), None, "gpu-direct", ""),
        (put(config={}, kallsyms=[], files={}), "warning", "gpu-direct", "not known"),
    ],
)
def test_what_is_found_and_only_there(
    tmp_path: Path, change: Change, severity: str | None, code: str, text: str
) -> None:
    """The node as it is has none of them; with peer memory beside it, a kernel without dma-buf is fine as well."""
    assert set(findings(tmp_path / "good", "oci_mi300x")) == {"not-fabric"}
    found = findings(tmp_path / "bad", "oci_mi300x", change)
    if severity is None:
        assert code not in found
        return
    assert found[code].severity == severity
    assert text in found[code].text
    assert found[code].fix


def test_no_rdma_is_all_that_is_said(tmp_path: Path) -> None:
    (found,) = findings(tmp_path, "no_rdma").values()
    assert (found.severity, found.code) == ("error", "no-rdma")


def test_a_kernel_without_any_way_to_gpu_memory_is_an_error(tmp_path: Path) -> None:
    assert findings(tmp_path / "off", "doks")["gpu-direct"].severity == "error"
    assert "gpu-direct" not in findings(tmp_path / "on", "nic_down")


def test_a_spare_port_that_is_down_is_a_warning(tmp_path: Path) -> None:
    """It is of the fabric's model, but every GPU has a NIC without it; a dead port of another model is no loss."""
    assert findings(tmp_path / "spare", "pollara")["nic-lost"].severity == "warning"
    assert "nic-lost" not in findings(tmp_path / "other", "oci_mi300x")
    assert "nic-lost" not in findings(tmp_path / "dead", "doks")


def test_without_gpus_a_lost_nic_is_an_error(tmp_path: Path) -> None:
    found = findings(tmp_path, "pollara", put(gpus={}))
    assert found["nic-lost"].severity == "error"
    assert found["no-gpu"].severity == "note"
    assert "gpu-direct" not in found


@pytest.mark.parametrize(
    ("ucx", "severity"),
    [("", "note"), ("da3fac2a", "note"), ("1.19.0", "error"), ("1.18.1", None), ("1.19.1", None), ("1.22.0", None)],
)
def test_vrfs_and_the_version_of_ucx(tmp_path: Path, ucx: str, severity: str | None) -> None:
    found = findings(tmp_path / "vrf", "nic_down", ucx=ucx).get("vrf")
    assert (found.severity if found else None) == severity
    assert "vrf" not in findings(tmp_path / "none", "oci_mi300x", ucx=ucx)


def test_no_usable_nic_says_why_of_each(tmp_path: Path) -> None:
    found = findings(tmp_path, "soft_roce")
    assert set(found) == {"none-usable"}
    assert "rxe0:1: software (rxe), no NIC" in found["none-usable"].text


def test_nics_that_are_a_pods_own(tmp_path: Path) -> None:
    """From another network namespace, devices are seen without their network devices and addresses."""

    def change(node: Description) -> None:
        for name in [name for name in node["netdevs"] if "fabric" in name]:
            del node["netdevs"][name]
        for number in range(2, 10):
            node["rdma"][f"mlx5_{number}"]["gids"] = []

    found = findings(tmp_path, "doks", change)["none-usable"]
    assert "mlx5_2:1: its network device is in another network namespace" in found.text
    assert "hostNetwork" in found.fix


def test_a_front_end_that_is_all_there_is(tmp_path: Path) -> None:
    def change(node: Description) -> None:
        node["rdma"] = {"mlx5_1": node["rdma"]["mlx5_1"]}

    assert "UCX_NET_DEVICES" in findings(tmp_path, "oci_mi300x", change)["none-usable"].fix


def test_worst_first(tmp_path: Path) -> None:
    order = [finding.severity for finding in choose(read(tmp_path, "nic_down")).findings]
    assert order == sorted(order, key=["error", "warning", "note"].index)
    assert order[0] == "error"
