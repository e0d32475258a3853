"""`make rehearse STACK=…`: a shipped stack, deployed for real on a simulated cluster, looked at, and taken down.

Real: Pulumi, its Kubernetes provider, this repository's program, the API server, scheduler and controllers, KubeRay's
operator. Simulated: DigitalOcean, the nodes, every container, and so Ray. It says so when it starts.
"""

import hashlib
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import yaml
from rich.console import Console
from rich.table import Table

from infra.benchmark_job.job import job_from
from infra.provider.kubernetes_api import KubernetesApi
from serving.cluster import ExistingCluster
from serving.fabric_plan import fabric_plan
from serving.kubernetes_names import BENCHMARK
from serving.stack import Stack
from serving.stack_files import PROJECT, load_stack
from serving.yaml_text import yaml_text
from tools.project_copy import ProjectCopy
from tools.rehearsal import rehearsable, stand_in_plugins
from tools.rehearsal.cluster import SIMULATED, SimulatedCluster
from tools.rehearsal.landing import COMPONENT, Landing, faults, landing
from tools.rehearsal.state_directory import state_directory
from tools.toolchain import kubernetes_provider
from tools.toolchain.console import Stages, say
from tools.toolchain.errors import ToolchainError
from tools.toolchain.versions import ROOT

ITEM = rehearsable.ITEM
_ALSO_SIMULATED = """\
real       Pulumi, its Kubernetes provider, the program that they run
simulated  DigitalOcean's API"""
_STAND_IN = (
    "what the nodes told of their RDMA fabric, and what the RDMA gate above has judged, are stand-ins "
    "(tools/rehearsal/fabric_stand_in.py): nothing was measured"
)
_READY_SECONDS = 300  # a stand-in for Ray serves within seconds; a real stack keeps its own timeout
_SCHEDULED_SECONDS = 30  # chosen because the scheduler places a pod that fits within one, unless the machine is busy


def rehearse(name: str) -> int:
    """Bring up a cluster, deploy, print where the pods landed and what is wrong there, destroy; an exit code."""
    stack = load_stack(name)
    rehearsable.check(name, stack)
    nodes = rehearsable.nodes_of(stack)
    print(f"{SIMULATED}\n{_ALSO_SIMULATED}", flush=True)
    stages = Stages(ITEM)
    with state_directory(ITEM) as folder, ExitStack() as undo:
        with stages.stage("control plane"):
            cluster = SimulatedCluster(folder / "cluster", gpu_nodes=0, cpu_nodes=2 if nodes else 0, nodes=nodes)
            undo.enter_context(cluster)
        project = RehearsalProject(folder, cluster)
        with stages.stage(f"pulumi up of {name}"):
            project.deploy(name, stack)
        # Printed before anything else can fail.
        found = look(cluster, stack, stack.namespace or name)
        print_table(found)
        if fabric_plan(stack).inspect:
            say(ITEM, _STAND_IN)
        wrong = faults(found, stack)
        for fault in wrong:
            say(ITEM, f"WRONG: {fault}")
        with stages.stage("pulumi destroy"):
            project.pulumi("destroy", "--yes", "--suppress-outputs")
    stages.print_times()
    if not wrong:
        good = "every engine pod on a node of its own with all its devices; head and benchmark elsewhere"
        say(ITEM, f"{name}: {good if stack.profile.gpus_per_node else 'every pod on a node; no engine asks for GPUs'}")
    return 1 if wrong else 0


def look(cluster: SimulatedCluster, stack: Stack, namespace: str) -> list[Landing]:
    """Every pod of the namespace, and one of a benchmark Job that is made from the template for this look only."""
    api, jobs = KubernetesApi(str(cluster.outside_kubeconfig)), f"/apis/batch/v1/namespaces/{namespace}/jobs"
    cronjob = api.get(f"/apis/batch/v1/namespaces/{namespace}/cronjobs/{BENCHMARK}")
    if cronjob is None:
        raise ToolchainError(ITEM, f"no CronJob {BENCHMARK} in {namespace}", "see what `pulumi up` said above")
    job = job_from(cronjob, f"{BENCHMARK}-rehearsal", ["--help"], _READY_SECONDS)
    api.post(jobs, job)
    try:
        pods = _scheduled(api, namespace)
        nodes = {node["metadata"]["name"]: node for node in api.list("/api/v1/nodes")}
        return [landing(pod, nodes, stack.profile.gpu_resource) for pod in pods]
    finally:
        api.delete(f"{jobs}/{job['metadata']['name']}", propagationPolicy="Foreground")


def _scheduled(api: KubernetesApi, namespace: str) -> list[dict[str, Any]]:
    """All pods, once the scheduler has put each on a node and the benchmark's is among them, or time is up."""
    deadline = time.monotonic() + _SCHEDULED_SECONDS
    while True:
        pods = api.list(f"/api/v1/namespaces/{namespace}/pods")
        roles = {pod["metadata"].get("labels", {}).get(COMPONENT) for pod in pods}
        placed = BENCHMARK in roles and all(pod["spec"].get("nodeName") for pod in pods)
        if placed or time.monotonic() > deadline:
            return pods
        time.sleep(0.2)


class RehearsalProject(ProjectCopy):
    """A copy of the project whose DigitalOcean and whose cluster are simulated."""

    def __init__(self, folder: Path, cluster: SimulatedCluster) -> None:
        super().__init__(folder / "project", ITEM, f"the cluster's logs are in {cluster.logs}")
        self._cluster = cluster
        self._state = folder / "digitalocean"
        self._state.mkdir(parents=True, exist_ok=True)

    def deploy(self, name: str, stack: Stack) -> None:
        kubernetes_provider.put_into(self.place / "home")
        stand_in_plugins.put_into(self.place / "home")
        document = yaml.safe_load((ROOT / f"Pulumi.{name}.yaml").read_text())
        document["config"] |= {f"{PROJECT}:{key}": value for key, value in changes(stack, self._cluster).items()}
        self.prepare(name, yaml_text(document))
        self.pulumi("up", "--yes", "--suppress-outputs")

    def environment(self) -> dict[str, str]:
        own = super().environment()
        return {
            **own,
            "PD_REHEARSAL_STATE": str(self._state),
            # Pulumi's Kubernetes provider leaves a copy of the kubeconfig in the folder for temporary files.
            "TMPDIR": str(self._state),
            "PD_REHEARSAL_KUBECONFIG": str(self._cluster.outside_kubeconfig),
            "DIGITALOCEAN_TOKEN": "simulated",
        }


def changes(stack: Stack, cluster: SimulatedCluster) -> dict[str, Any]:
    """What a rehearsal sets on top of a stack file: no public image exists, and the operator is there already."""
    settings: dict[str, Any] = {
        "images": {name: simulated_image(name) for name in ("engine", "benchmark")},
        "rayOperator": {"install": "preinstalled"},
        "readyTimeoutSeconds": _READY_SECONDS,
    }
    if isinstance(stack.cluster, ExistingCluster):
        given = stack.cluster.model_dump(by_alias=True, exclude_unset=True)
        settings["cluster"] = {**given, "kubeconfig": str(cluster.outside_kubeconfig), "context": ""}
    return settings


def simulated_image(name: str) -> str:
    """A reference by digest to an image that is nowhere; simulated nodes pull nothing."""
    return f"simulated.invalid/{name}@sha256:{hashlib.sha256(name.encode()).hexdigest()}"


def print_table(found: list[Landing]) -> None:
    table = Table(title="where every pod landed (benchmark: one Job made for this look, as `make benchmark` makes it)")
    for heading in ("pod", "role", "node", "GPUs of the node", "RDMA devices"):
        table.add_column(heading, no_wrap=heading == "pod")
    for it in found:
        gpus = f"{it.gpus} of {it.node_gpus}" if it.node_gpus else "none"
        rdma = f"{sum(it.rdma.values())} of {len(it.node_rdma)}" if it.node_rdma else "none"
        table.add_row(it.pod, it.role, it.node or f"nowhere: {it.why}", gpus, rdma)
    # A log has no width of its own, and the default of 80 columns would cut names off.
    Console(width=None if sys.stdout.isatty() else 160).print(table)
