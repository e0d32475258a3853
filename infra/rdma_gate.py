"""Nothing serves before RDMA is proven: resource pd:index:RdmaGate. The RayService comes after it and goes before."""

from typing import Any

import pulumi

from infra.cluster.access import KubernetesAccess
from infra.late import Late
from serving.fabric_plan import FabricPlan
from serving.rdma_gate.jobs import gate_pod
from serving.stack import Stack


class RdmaGate(pulumi.CustomResource):
    """See infra/provider/rdma_gate.py."""

    state: pulumi.Output[str]
    summary: pulumi.Output[str]

    def __init__(self, name: str, access: KubernetesAccess, inputs: dict[str, Any], opts: pulumi.ResourceOptions):
        outputs = dict.fromkeys(("state", "summary", "outcome", "verdicts", "known", "untested"))
        super().__init__("pd:index:RdmaGate", name, {**access.inputs, **inputs, **outputs}, access.after_it(opts))

    @property
    def for_benchmarks(self) -> dict[str, Any]:
        """`fabric` of the benchmark's target: how far RDMA is proven, and why not, or what was seen."""
        return {"gate": self.state, "reason": self.summary}


def rdma_gate(
    stack: Stack,
    plan: FabricPlan,
    stack_name: str,
    namespace: str,
    access: KubernetesAccess,
    late: Late,
    opts: pulumi.ResourceOptions,
) -> RdmaGate:
    """Register the gate, also where nothing has to be proven.

    So that a stack which is given something to prove later (prefill and decode in place of aggregated replicas) makes a
    replacement of it, for which the RayService goes, and no new resource, for which it would stay on the GPUs.
    """
    runs, facts = plan.runs_gate, late.facts
    inputs = {
        "namespace": namespace,
        "stack": stack_name,
        "mode": plan.gate,
        "reason": plan.reason,
        "template": late.of(stack, lambda whole: gate_pod(whole, stack_name)) if runs else {},
        "nodes": facts.nodes if runs and facts else [],
        "nodeSelector": stack.profile.node_selector,
        "replicas": stack.topology_.replicas,
        "gpuResource": stack.profile.gpu_resource,
        "terms": {
            "devices": facts.devices if runs and facts else list(plan.devices),
            "memory": plan.memory,
            "linkGbps": facts.linkGbps if runs and facts else 0,
            "floorGbps": stack.fabric.floor_gbps or 0,
            "hardware": facts.hardware if facts else None,
        },
    }
    return RdmaGate("rdma-gate", access, inputs, opts)
