"""A cluster whose gate pods are there at once and say what a test wants, as the provider sees it."""

from threading import Event
from typing import Any

from infra.provider.kubernetes_api import KubernetesApi
from infra.provider.resource import Operation
from serving.rdma_gate.jobs import gate_pod
from serving.stack import parse_stack
from tools.rehearsal.fabric_stand_in import gate_log

Json = dict[str, Any]
NICS = ["mlx5_0:1", "mlx5_1:1"]
_STACK = parse_stack(
    {
        "model": "qwen3-235b-a22b-fp8",
        "topology": "2p1d",
        "scenario": "qwen-16k-1k",
        "cluster": {"provider": "doks"},
        "images": {name: f"registry.example/{name}@sha256:{'1' * 64}" for name in ("engine", "benchmark")},
    }
)
INPUTS: Json = {
    "kubeconfig": "file",
    "context": "",
    "namespace": "space",
    "stack": "pd-test",
    "mode": "required",
    "reason": "",
    "template": gate_pod(_STACK, "pd-test"),
    "nodes": ["a", "b", "c"],
    "nodeSelector": {"gpu": "yes"},
    "replicas": 3,
    "gpuResource": "amd.com/gpu",
    "terms": {"devices": NICS, "memory": "rocm", "linkGbps": 400, "floorGbps": 0, "hardware": NICS},
}
_SERVICE = "/apis/ray.io/v1/namespaces/space/rayservices/llm"
_STAGED = {"lane": "tcp/eth0", "description": "software emulation"}


class Api(KubernetesApi):
    """Jobs with pods. bad: nodes that read over TCP. phases: node -> the phase of its pods, else they have ended."""

    user = "me"

    def __init__(self, bad: tuple[str, ...] = (), phases: dict[str, str] | None = None, **objects: Any) -> None:
        self.bad, self.phases, self.objects = bad, phases or {}, objects
        self.jobs: dict[str, Json] = {}
        self.made: list[str] = []
        self.pods: list[Json] | Exception = []
        self.at_once = 0

    def get(self, path: str, **query: Any) -> Any:
        return self.objects.get("service") if path == _SERVICE else None

    def post(self, path: str, body: Json, **query: Any) -> Json:
        name = body["metadata"]["name"]
        assert name not in self.jobs, "as Kubernetes would refuse it"
        self.made.append(name)
        self.jobs[name] = {**body, "metadata": {**body["metadata"], "uid": f"uid-{len(self.made)}"}}
        self.at_once = max(self.at_once, len(self.jobs))
        return self.jobs[name]

    def list(self, path: str, **query: Any) -> list[Json]:
        if path.endswith("/jobs"):
            return list(self.jobs.values())
        if path == "/api/v1/pods":
            if isinstance(self.pods, Exception):
                raise self.pods
            return self.pods
        if path == "/api/v1/nodes":
            ready = [{"type": "Ready", "status": "True"}]
            return [{"metadata": {"name": n}, "spec": {}, "status": {"conditions": ready}} for n in "dab"]
        name = query["labelSelector"].partition("=")[2]
        return [self._pod(self.jobs[name])] if name in self.jobs else []

    def _pod(self, job: Json) -> Json:
        spec = job["spec"]["template"]["spec"]
        affinity = spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
        node = affinity["nodeSelectorTerms"][0]["matchFields"][0]["values"][0]
        phase = self.phases.get(node, "Succeeded")
        metadata = {"name": f"{job['metadata']['name']}-x", "ownerReferences": [{"uid": job["metadata"]["uid"]}]}
        status = {"phase": phase, "podIP": "10.0.0.1"} if phase != "Pending" else {"phase": phase}
        return {"metadata": metadata, "spec": {"nodeName": node}, "status": status}

    def text(self, path: str, **query: Any) -> str | None:
        _, _, pair, side, _ = path.split("/")[-2].split("-")
        client = self._pod(self.jobs[f"rdma-gate-{pair}-client"])
        return gate_log(side, NICS, **(_STAGED if client["spec"]["nodeName"] in self.bad else {}))

    def patch(self, path: str, body: Json) -> bool:
        self.jobs[path.rpartition("/")[2]]["spec"] |= body["spec"]
        return True

    def delete(self, path: str, **query: Any) -> bool:
        return self.jobs.pop(path.rpartition("/")[2], None) is not None


class Said:
    def __init__(self, cancelled: bool = False) -> None:
        self.lines: list[str] = []
        self.warnings: list[str] = []
        event = Event()
        if cancelled:
            event.set()
        self.operation = Operation(lambda message, _: self.lines.append(message), event, warning=self.warnings.append)
