"""One set of UCX's variables for several nodes, or a line that says why there is none."""

from pathlib import Path
from typing import Any

import pytest
from fabric_tree import Description, read

from serving.fabric.combine import combine
from serving.fabric.node import NodeFabric
from tools.rehearsal.fabric_stand_in import stand_in_node

DMABUF = {"CONFIG_PCI_P2PDMA": True, "CONFIG_DMABUF_MOVE_NOTIFY": True}


@pytest.fixture
def node(tmp_path: Path) -> Any:
    """A DigitalOcean node with dma-buf, after a change of its description."""

    def make(change: Any = lambda node: None, name: str = "doks") -> NodeFabric:
        def changed(description: Description) -> None:
            if name == "doks":
                description.update(config=DMABUF)
            change(description)

        return read(tmp_path / f"node-{len(list(tmp_path.iterdir()))}", name, changed)

    return make


def test_nodes_that_are_alike(node: Any) -> None:
    fabric = combine({"b": node(), "a": node()}, {})
    assert fabric.environment == {
        "UCX_NET_DEVICES": ",".join(f"mlx5_{number}:1" for number in range(2, 10)),
        "UCX_IB_GID_INDEX": "3",
        "UCX_ROCM_COPY_DMABUF": "y",
    }
    assert fabric.devices == tuple(f"mlx5_{number}:1" for number in range(2, 10))
    assert fabric.link_gbps == 400
    assert (fabric.problems, fabric.unusable, fabric.notes) == ((), (), ())
    assert list(fabric.findings) == ["a", "b"]


def test_nodes_that_differ_are_named_with_their_values(node: Any) -> None:
    def moved(description: Description) -> None:
        for nic in description["rdma"].values():
            nic["gids"] = [gid.replace("3 v2 fd02", "5 v2 fd02") for gid in nic.get("gids", [])]

    (problem,) = combine({"a": node(), "b": node(), "c": node(moved)}, {}).problems
    assert problem == (
        "UCX_IB_GID_INDEX differs between nodes, and engines have one: 3 on a, b; 5 on c; make the nodes alike, or set "
        "cluster.nodes.environment.UCX_IB_GID_INDEX"
    )
    problems = combine({"a": node(), "b": node(name="oci_mi300x")}, {}).problems
    assert [line.split()[0] for line in problems] == ["UCX_NET_DEVICES", "UCX_IB_TRAFFIC_CLASS"]
    assert "not set on a; 41 on b" in problems[1]


def test_a_gid_index_that_serves_all_nodes_is_taken_though_one_needs_none(node: Any) -> None:
    """UCX finds 3 by itself where the link-local address is of v1 only."""

    def plain(description: Description) -> None:
        for nic in description["rdma"].values():
            nic["gids"] = [gid for gid in nic.get("gids", []) if "v2 fe80" not in gid]

    assert combine({"a": node(plain)}, {}).environment.get("UCX_IB_GID_INDEX") is None
    fabric = combine({"a": node(plain), "b": node()}, {})
    assert (fabric.environment["UCX_IB_GID_INDEX"], fabric.problems) == ("3", ())

    def elsewhere(description: Description) -> None:
        plain(description)
        for nic in description["rdma"].values():
            nic["gids"] = [gid.replace("3 v2 fd02", "1 v2 fd02") for gid in nic["gids"]]

    (problem,) = combine({"a": node(elsewhere), "b": node()}, {}).problems
    assert "not set on a; 3 on b" in problem


def test_of_two_indices_the_one_that_both_nodes_have_is_taken(node: Any) -> None:
    def first(description: Description) -> None:
        for nic in description["rdma"].values():
            nic["gids"] = [*nic.get("gids", []), "5 v2 fd02::5"]

    def fifth(description: Description) -> None:
        for nic in description["rdma"].values():
            nic["gids"] = [gid.replace("3 v2 fd02", "5 v2 fd02") for gid in nic.get("gids", [])]

    for nodes in ({"a": node(first), "b": node(fifth)}, {"a": node(fifth), "b": node(first)}):
        assert combine(nodes, {}).environment["UCX_IB_GID_INDEX"] == "5"


def test_what_is_set_by_hand_wins_and_is_noted_where_it_differs(node: Any) -> None:
    given = {"UCX_IB_GID_INDEX": "1", "UCX_TLS": "rc"}
    fabric = combine({"a": node(), "b": node()}, given)
    assert "UCX_IB_GID_INDEX" not in fabric.environment
    assert fabric.notes == ("UCX_IB_GID_INDEX=1 of the stack is used; the nodes say 3 on a, b",)
    assert combine({"a": node()}, {"UCX_IB_GID_INDEX": "3"}).notes == ()
    # Nodes need not agree on what is set by hand.
    both = {"UCX_NET_DEVICES": "mlx5_2:1", "UCX_IB_GID_INDEX": "3", "UCX_IB_TRAFFIC_CLASS": "41"}
    fabric = combine({"a": node(), "b": node(name="oci_mi300x")}, both)
    assert fabric.problems == ()
    assert fabric.devices == ("mlx5_2:1",)


def test_a_device_that_a_node_lacks_is_a_problem(node: Any) -> None:
    (problem,) = combine({"a": node(), "b": node()}, {"UCX_NET_DEVICES": "mlx5_2:1,mlx5_77:1"}).problems[:1]
    assert problem.startswith("a lacks mlx5_77:1 of UCX_NET_DEVICES and has mlx5_0:1, mlx5_2:1")


def test_a_node_without_usable_fabric_is_named_with_its_finding(node: Any) -> None:
    fabric = combine({"a": node(), "b": node(lambda it: it.update(config=dict.fromkeys(DMABUF, False)))}, {})
    (line,) = fabric.unusable
    assert line.startswith("b has no usable fabric: NICs cannot reach GPU memory: no CONFIG_DMABUF_MOVE_NOTIFY")
    assert "boot a kernel with both options" in line
    # Who has set the variable knows.
    off = {"UCX_ROCM_COPY_DMABUF": "n"}
    fabric = combine({"b": node(lambda it: it.update(config=dict.fromkeys(DMABUF, False)))}, off)
    assert fabric.unusable == ()
    assert fabric.findings["b"][0].code == "gpu-direct"


def test_the_rights_of_whoever_read_the_node_are_no_finding(node: Any) -> None:
    fabric = combine({"a": node(lambda it: it.update(memlock=65536, capabilities=0))}, {})
    assert "memlock" not in {finding.code for finding in fabric.findings["a"]}


def test_groups_of_all_nodes() -> None:
    one = stand_in_node()
    other = one.model_copy(update={"gpus": one.gpus.model_copy(update={"render_groups": (44,)})})
    assert combine({"a": one, "b": other}, {}).supplemental_groups == (44, 991)


def test_the_stand_in_node_is_the_described_one(node: Any) -> None:
    """With a kernel that has dma-buf, a render group, and no name."""
    described = node()
    groups = described.gpus.model_copy(update={"render_groups": (991,)})
    assert stand_in_node() == described.model_copy(update={"hostname": None, "gpus": groups})


def renamed(description: Description) -> None:
    """Soft-RoCE, under a name that tells nothing."""
    description["rdma"] = {"soft0": description["rdma"]["rxe0"]}


def test_software_that_is_named_by_hand_is_no_fabric(node: Any) -> None:
    fabric = combine({"a": node(renamed, "soft_roce")}, {"UCX_NET_DEVICES": "soft0:1"})
    assert fabric.unusable == (
        "a has no usable fabric: UCX_NET_DEVICES names software and no NIC: soft0:1 (rxe); name NICs, or none",
    )
    assert (fabric.devices, fabric.hardware) == (("soft0:1",), ())


def test_a_device_that_is_software_on_one_node_is_no_hardware(node: Any) -> None:
    assert combine({"a": node()}, {}).hardware == tuple(f"mlx5_{number}:1" for number in range(2, 10))

    def soft(description: Description) -> None:
        nic = description["rdma"]["mlx5_2"]
        del nic["pci"]
        nic["parent"] = nic["netdev"]

    fabric = combine({"a": node(), "b": node(soft)}, {"UCX_NET_DEVICES": "mlx5_2:1,mlx5_3:1"})
    assert fabric.hardware == ("mlx5_3:1",)
    assert [line.split()[0] for line in fabric.unusable] == ["b"]


def test_the_floor_is_that_of_the_slowest_nic(node: Any) -> None:
    def slow(description: Description) -> None:
        description["rdma"]["mlx5_5"]["rate"] = "200 Gb/sec (4X HDR)"

    assert combine({"a": node(), "b": node(slow)}, {}).link_gbps == 200
