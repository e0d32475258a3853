"""A stand-in for DigitalOcean's Pulumi provider: VPC, DOKS cluster, node pool, firewall, and the Kubernetes versions.

For rehearsals without an account. An engine finds it in a Pulumi home that stand_in_plugins.py has put it into. It
checks inputs against the SDK (digitalocean_schema.py), keeps objects in a file and fails or delays on demand
(digitalocean_store.py), and makes a pool's nodes appear in the control plane of $PD_REHEARSAL_KUBECONFIG
(digitalocean_nodes.py).
"""

# ruff: noqa: N802 - methods have the names of the gRPC service

import os
import secrets
from pathlib import Path
from typing import Any

from google.protobuf import empty_pb2
from pulumi.runtime.proto import provider_pb2

from tools.rehearsal.digitalocean_api import Api, ApiError
from tools.rehearsal.digitalocean_diff import differences
from tools.rehearsal.digitalocean_store import Store
from tools.rehearsal.pulumi_wire import UNKNOWN, Properties, secret_keys, struct, unknown, values
from tools.rehearsal.stand_in import StandIn, one_line_errors, serve
from tools.toolchain.versions import versions

_TOKEN_VARIABLES = ("DIGITALOCEAN_TOKEN", "DIGITALOCEAN_ACCESS_TOKEN")
# Outputs that the cloud makes up, so that a preview does not know them.
_COMPUTED = {
    "vpc": ("createdAt", "default", "vpcUrn"),
    "kubernetesCluster": (
        *("createdAt", "updatedAt", "status", "clusterSubnet", "serviceSubnet", "ipv4Address", "clusterUrn"),
        *("endpoint", "kubeConfigs"),
    ),
    "kubernetesNodePool": ("actualNodeCount", "nodes"),
    "firewall": ("createdAt", "status", "pendingChanges"),
}


def _kind(urn: str) -> str:
    """`...::digitalocean:index/vpc:Vpc::name` -> `vpc`."""
    return urn.split("::")[-2].split("$")[-1].split("/")[1].split(":")[0]


class Provider(StandIn):
    """Pulumi's ResourceProvider service over `store`."""

    def __init__(self, store: Store) -> None:
        super().__init__("digitalocean", versions()["pulumi_digitalocean"]["version"])
        self._api = Api(store, self.cancelled.wait)

    def CheckConfig(self, request: Any, context: Any) -> Any:
        """A token from the configuration or the environment; never in clear in the state."""
        config = values(request.news)
        token = config.get("token") or next(filter(None, map(os.environ.get, _TOKEN_VARIABLES)), "")
        reason = "digitalocean: missing required configuration key token"
        failures = [] if token else [provider_pb2.CheckFailure(property="token", reason=reason)]
        inputs = struct({**config, "token": token}, secrets=["token"])
        return provider_pb2.CheckResponse(inputs=inputs, failures=failures)

    @one_line_errors
    def Invoke(self, request: Any, context: Any) -> Any:
        name = request.tok.split(":")[-1]
        if name != "getKubernetesVersions":
            raise ApiError(f"the stand-in has no {request.tok}")
        prefix = values(request.args).get("versionPrefix", "")
        valid = self._api.versions(prefix)
        answer = {"id": secrets.token_hex(4), "validVersions": valid, "versionPrefix": prefix}
        if valid:
            answer["latestVersion"] = valid[0]
        response = provider_pb2.InvokeResponse()
        getattr(response, "return").CopyFrom(struct(answer))
        return response

    @one_line_errors
    def Check(self, request: Any, context: Any) -> Any:
        from tools.rehearsal.digitalocean_schema import problems  # imports the SDK, which takes a second

        news, kind = values(request.news), _kind(request.urn)
        if "name" not in news:
            # As the Pulumi provider does: eight characters at the end keep names apart.
            made_up = f"{request.urn.split('::')[-1]}-{secrets.token_hex(4)[:7]}"
            news["name"] = values(request.olds).get("name") or made_up
        failures = [provider_pb2.CheckFailure(reason=problem) for problem in problems(kind, news)]
        return provider_pb2.CheckResponse(inputs=struct(news, secret_keys(request.news)), failures=failures)

    @one_line_errors
    def Diff(self, request: Any, context: Any) -> Any:
        return differences(_kind(request.urn), values(request.old_inputs), values(request.news))

    @one_line_errors
    def Create(self, request: Any, context: Any) -> Any:
        kind, inputs = _kind(request.urn), values(request.properties)
        hidden = _hidden(kind, secret_keys(request.properties))
        if request.preview:
            planned = {**dict.fromkeys(_COMPUTED[kind], UNKNOWN), **inputs}
            return provider_pb2.CreateResponse(properties=struct(planned, hidden))
        object_id, outputs = self._api.create(kind, inputs)
        return provider_pb2.CreateResponse(id=object_id, properties=struct(outputs, hidden))

    @one_line_errors
    def Read(self, request: Any, context: Any) -> Any:
        found = self._api.read(request.id, values(request.properties))
        if found is None:
            return provider_pb2.ReadResponse()
        inputs, outputs = found
        hidden = _hidden(_kind(request.urn), secret_keys(request.inputs))
        return provider_pb2.ReadResponse(
            id=request.id, inputs=struct(inputs, hidden & inputs.keys()), properties=struct(outputs, hidden)
        )

    @one_line_errors
    def Update(self, request: Any, context: Any) -> Any:
        kind, news, olds = _kind(request.urn), values(request.news), values(request.olds)
        hidden = _hidden(kind, secret_keys(request.news))
        if request.preview or unknown(news):
            return provider_pb2.UpdateResponse(properties=struct({**_planned(kind, olds), **news}, hidden))
        outputs = self._api.update(request.id, news, olds)
        return provider_pb2.UpdateResponse(properties=struct(outputs, hidden))

    @one_line_errors
    def Delete(self, request: Any, context: Any) -> Any:
        self._api.delete(request.id)
        return empty_pb2.Empty()


def _planned(kind: str, olds: Properties) -> Properties:
    """What a preview of an update knows: computed values stay, but for the nodes of a pool."""
    changing = {"actualNodeCount", "nodes"} if kind == "kubernetesNodePool" else set()
    return {key: UNKNOWN if key in changing else olds[key] for key in _COMPUTED[kind] if key in olds}


def _hidden(kind: str, given: set[str]) -> set[str]:
    return {*given, "kubeConfigs"} if kind == "kubernetesCluster" else given


if __name__ == "__main__":
    serve(Provider(Store(Path(os.environ["PD_REHEARSAL_STATE"]))))
