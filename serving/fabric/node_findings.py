"""Findings about the rest of a node: what engines may pin and open, and settings of the kernel that cost time."""

from serving.fabric.findings import Finding, note, warning
from serving.fabric.node import NodeFabric


def node_findings(fabric: NodeFabric) -> list[Finding]:
    findings: list[Finding] = []
    kernel = fabric.kernel
    if not kernel.may_pin:
        text = f"this process may pin {(kernel.memlock or 0) // 1024} KiB, and registering KV memory pins all of it"
        findings.append(warning("memlock", text, "give engines IPC_LOCK, or an unlimited memlock"))
    if kernel.numa_balancing:
        text = "NUMA balancing is on: it moves pages under running transfers and costs throughput"
        findings.append(warning("numa-balancing", text, "sysctl kernel.numa_balancing=0"))
    if not fabric.gpus.gpus:
        return findings
    if not fabric.gpus.render_groups:
        text = "/dev/dri has no render device here: the group that may open the GPUs is not known"
        findings.append(
            warning("render-group", text, "run with the node's /dev/dri, and set cluster.nodes.renderGroup")
        )
    if not kernel.iommu_passthrough:
        text = "no iommu=pt on the kernel's command line: on bare metal the IOMMU translates every transfer"
        findings.append(note("iommu", text, "boot with iommu=pt; a virtual machine has no say in it"))
    return findings
