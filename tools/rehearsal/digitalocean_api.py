"""What DigitalOcean's API and its provider do with an object: make it, tell of it, change it, take it away.

Outputs carry the names and shapes of the SDK's resources. Values that only the cloud knows are made up.
"""

import secrets
import time
import uuid
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import yaml

from tools.rehearsal import digitalocean_nodes as nodes
from tools.rehearsal.digitalocean_store import Objects, Store
from tools.rehearsal.pulumi_wire import Properties
from tools.rehearsal.stand_in import StandInError
from tools.toolchain.errors import ToolchainError
from tools.toolchain.versions import release, versions

_WEEK = timedelta(days=7)  # DOKS's own term of a kubeconfig, also for 0 (SDK, kubeconfig_expire_seconds)


class ApiError(StandInError):
    """A refusal, in one line."""


class Api:
    """`interrupted`: asked while something takes its time; True ends the wait."""

    def __init__(self, store: Store, interrupted: Callable[[float], bool]) -> None:
        self._store = store
        self._interrupted = interrupted

    def versions(self, prefix: str = "") -> list[str]:
        """Slugs on offer, newest first."""
        return [slug for slug in self._store.versions() or _offered() if slug.startswith(prefix)]

    def create(self, kind: str, inputs: Properties) -> tuple[str, Properties]:
        self._take_time(kind)
        with self._store.change() as objects:
            self._check_references(kind, inputs, objects)
        object_id, outputs = str(uuid.uuid4()), _made_up(kind, inputs)
        if kind in ("kubernetesCluster", "kubernetesNodePool"):
            self._scale(kind, inputs, outputs)
        outputs |= _named_after(kind, object_id)
        with self._store.change() as objects:
            objects[object_id] = {"kind": kind, "inputs": inputs, "outputs": outputs}
        return object_id, self._seen(kind, inputs, outputs, {})

    def read(self, object_id: str, known: Properties) -> tuple[Properties, Properties] | None:
        """(inputs, outputs) as they are, or None. `known`: the outputs in the state, with a kubeconfig to keep."""
        found = self._store.read().get(object_id)
        if found is None:
            return None
        return found["inputs"], self._seen(found["kind"], found["inputs"], found["outputs"], known)

    def update(self, object_id: str, news: Properties, known: Properties) -> Properties:
        found = self._store.read().get(object_id)
        if found is None:
            raise ApiError("404 The resource you were accessing could not be found.")
        kind, outputs = found["kind"], found["outputs"]
        self._take_time(kind)
        if found["inputs"].get("ha") and not news.get("ha"):
            raise ApiError("422 high availability cannot be disabled")
        if kind in ("kubernetesCluster", "kubernetesNodePool"):
            self._scale(kind, news, outputs)
        with self._store.change() as objects:
            objects[object_id] = {"kind": kind, "inputs": news, "outputs": outputs}
        return self._seen(kind, news, outputs, known)

    def delete(self, object_id: str) -> None:
        """Gone already is as good as deleted. A cluster takes its pools along."""
        with self._store.change() as objects:
            if _referring(objects, "vpcUuid", object_id):
                raise ApiError("403 Can not delete VPC with members")
            gone = [object_id, *_referring(objects, "clusterId", object_id)]
            pools = [_pool(found["kind"], found["outputs"]) for key in gone if (found := objects.pop(key, None))]
        nodes.remove([node["name"] for pool in pools for node in pool.get("nodes", [])])

    def _take_time(self, kind: str) -> None:
        if self._interrupted(self._store.delay(kind)):
            raise ApiError(f"interrupted while waiting for {kind}")
        if message := self._store.failure(kind):
            raise ApiError(f"422 {message}")

    def _check_references(self, kind: str, inputs: Properties, objects: Objects) -> None:
        for key in ("vpcUuid", "clusterId"):
            if key in inputs and inputs[key] not in objects:
                raise ApiError(f"404 {key} {inputs[key]} could not be found")
        if kind == "kubernetesCluster" and inputs["version"] not in self.versions():
            raise ApiError(f"422 invalid version slug {inputs['version']!r}")
        if wanted := inputs.get("ipRange"):
            ranges = [found["inputs"]["ipRange"] for found in objects.values() if "ipRange" in found["inputs"]]
            if any(ip_network(wanted).overlaps(ip_network(there)) for there in ranges):
                raise ApiError(f"422 {wanted} overlaps with another VPC network in your account")
        taken = {(found["kind"], *_name_in_scope(found["inputs"])) for found in objects.values()}
        if (kind, *_name_in_scope(inputs)) in taken:
            raise ApiError(f"422 name {inputs['name']!r} is already in use")

    def _scale(self, kind: str, inputs: Properties, outputs: Properties) -> None:
        """Bring the pool's nodes to the number that is wanted; the oldest stay."""
        wanted = inputs["nodePool"] if kind == "kubernetesCluster" else inputs
        pool = _pool(kind, outputs)
        there, count = pool.get("nodes", []), wanted.get("nodeCount", 1)
        added = nodes.new_names(wanted["name"], count - len(there))
        try:
            nodes.add(added, wanted["name"], wanted["size"])
        except ToolchainError as error:
            raise ApiError(str(error)) from None
        nodes.remove([node["name"] for node in there[count:]])
        pool["nodes"] = [*there[:count], *(_node(name) for name in added)]
        pool["actualNodeCount"] = count

    def _seen(self, kind: str, inputs: Properties, outputs: Properties, known: Properties) -> Properties:
        seen = {**inputs, **outputs}
        if kind == "kubernetesCluster":
            seen["nodePool"] = {**inputs["nodePool"], **outputs["nodePool"]}
            seen["kubeConfigs"] = _credentials(inputs, outputs["endpoint"], known.get("kubeConfigs") or [])
        return seen


def _name_in_scope(inputs: Properties) -> tuple[str, str]:
    """A pool's name is one within its cluster, the others' are one within the account."""
    return inputs["name"], inputs.get("clusterId", "")


def _referring(objects: Objects, key: str, object_id: str) -> list[str]:
    return [other for other, found in objects.items() if found["inputs"].get(key) == object_id]


def _credentials(inputs: Properties, endpoint: str, known: list[Properties]) -> list[Properties]:
    """The known ones until they expire, as the real provider has it (resource_kubernetes_cluster.go, read)."""
    now = datetime.now(UTC)
    if known and datetime.fromisoformat(known[0]["expiresAt"]) > now:
        return known
    term = timedelta(seconds=inputs.get("kubeconfigExpireSeconds") or 0) or _WEEK
    raw = Path(file).read_text() if (file := nodes.kubeconfig_file()) else _invented_kubeconfig(endpoint)
    content = yaml.safe_load(raw)
    cluster, user = content["clusters"][0]["cluster"], content["users"][0]["user"]
    return [
        {
            "rawConfig": raw,
            "host": cluster["server"],
            "clusterCaCertificate": cluster.get("certificate-authority-data", ""),
            "token": user.get("token", ""),
            "clientKey": user.get("client-key-data", ""),
            "clientCertificate": user.get("client-certificate-data", ""),
            "expiresAt": (now + term).isoformat(timespec="milliseconds"),
        }
    ]


def _invented_kubeconfig(endpoint: str) -> str:
    token = f"dop_v1_{secrets.token_hex(32)}"
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "do", "cluster": {"server": endpoint, "certificate-authority-data": ""}}],
        "users": [{"name": "do-admin", "user": {"token": token}}],
        "contexts": [{"name": "do", "context": {"cluster": "do", "user": "do-admin"}}],
        "current-context": "do",
    }
    return yaml.safe_dump(content)


def _offered() -> list[str]:
    """The pinned Kubernetes, and one release before and behind it."""
    found = release(versions()["kubernetes"]["version"])
    assert found is not None  # noqa: S101  versions.toml is ours
    major, minor, patch = found
    return [f"{major}.{minor + step}.{patch}-do.0" for step in (1, 0, -1)]


def _made_up(kind: str, inputs: Properties) -> Properties:
    if kind == "vpc":
        return {"createdAt": _now(), "default": False}
    if kind == "firewall":
        return {"createdAt": _now(), "status": "succeeded", "pendingChanges": []}
    if kind == "kubernetesNodePool":
        return {}
    return {
        "createdAt": _now(),
        "updatedAt": _now(),
        "status": "running",
        "clusterSubnet": inputs.get("clusterSubnet", "10.108.0.0/16"),
        "serviceSubnet": inputs.get("serviceSubnet", "10.109.0.0/19"),
        "ipv4Address": "" if inputs.get("ha") else "203.0.113.10",
        "nodePool": {"id": str(uuid.uuid4())},
    }


def _named_after(kind: str, object_id: str) -> Properties:
    if kind == "vpc":
        return {"vpcUrn": f"do:vpc:{object_id}"}
    if kind == "kubernetesCluster":
        host = f"https://{object_id}.k8s.ondigitalocean.com"
        return {"clusterUrn": f"do:kubernetes:{object_id}", "endpoint": host}
    return {}


def _pool(kind: str, outputs: Properties) -> Properties:
    return outputs["nodePool"] if kind == "kubernetesCluster" else outputs


def _node(name: str) -> dict[str, Any]:
    return {
        "id": str(uuid.uuid4()),
        "name": name,
        "status": "running",
        "dropletId": str(400_000_000 + secrets.randbelow(100_000_000)),
        "createdAt": _now(),
        "updatedAt": _now(),
    }


def _now() -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S +0000 UTC", time.gmtime())
