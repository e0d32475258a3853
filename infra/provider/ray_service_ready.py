"""Waits until a RayService serves what the stack says, and tells why when it does not.

KubeRay's own `Ready` only says that some Serve proxy answers; it stays true while a new config is rolled out. So the
Serve application is asked as well, through the API server, with the token that KubeRay made.

Inputs: kubeconfig, context, namespace, name, uid and generation (of the RayService: a new one of either means that
there is something new to wait for), application (ServeApplicationSchema), pods (how many Ray pods there must be),
objects (all that the stack makes under a fixed name -> its API path), readyTimeoutSeconds. No outputs. It changes
nothing in the cluster.

It depends on all of `objects`. So where it is in the state they are too, and one that the cluster has not was deleted
by somebody else. A refresh takes what is gone out of its inputs: then the next update makes that again.
"""

import base64
from dataclasses import dataclass, field
from typing import Any

from infra.provider.kubernetes_api import KubernetesApi, Unavailable
from infra.provider.missing_objects import missing, there
from infra.provider.pod_reasons import is_ready, not_ready, summary
from infra.provider.recorded_way_in import end_if_lost
from infra.provider.refused_pods import end_if_for_good, refused_pods
from infra.provider.resource import Interrupted, Operation, PartlyUpdated, Properties, ResourceError
from infra.provider.serve_application import FAILED, as_wanted, failure, progress

_POLL_SECONDS = 2.0
# An operator that runs writes a status within seconds; the chart's Deployment has been waited for before this.
_OPERATOR_SECONDS = 120.0
_DASHBOARD_PORT = 8265
# The way in as well, though there is nothing to wait for: `delete` is given what the last update recorded.
_WAY_IN = ("kubeconfig", "context")
_INPUTS = (*_WAY_IN, "namespace", "name", "uid", "generation", "application", "pods", "objects")


@dataclass
class Seen:
    """One look at the service. waiting: what for, in a line; serves: whether it does what the stack says."""

    waiting: str = ""
    serves: bool = False
    reasons: list[str] = field(default_factory=list)
    taken_up: bool = True


class RayServiceReady:
    """Implements infra.provider.resource.Resource."""

    def check(self, olds: Properties, news: Properties) -> list[str]:
        """What the last update left and is gone. Not what this one makes, and not in another cluster than then."""
        if any(olds.get(key) != news[key] for key in _WAY_IN):
            return []
        before = olds.get("objects") or {}
        left = {name: path for name, path in news["objects"].items() if before.get(name) == path}
        try:
            return missing(_api(news), news["namespace"], left)
        except ResourceError as error:
            return [str(error)]

    def changed(self, olds: Properties, news: Properties) -> bool | list[str]:
        return any(olds.get(key) != news.get(key) for key in _INPUTS)

    def planned(self, inputs: Properties) -> Properties:
        return {}

    def create(self, inputs: Properties, operation: Operation) -> tuple[str, Properties]:
        self._wait(inputs, operation)
        return f"{inputs['namespace']}/{inputs['name']}", {}

    def read(self, resource_id: str, outputs: Properties) -> tuple[Properties, Properties] | None:
        """Without the objects that are gone; None without the RayService."""
        if "objects" not in outputs:  # made by an earlier version
            return outputs, outputs
        try:
            found = there(_api(outputs), {**outputs["objects"], "": _path(outputs)})
        except ResourceError:  # a refresh is also how credentials are renewed
            return outputs, outputs
        left = {name: path for name, path in outputs["objects"].items() if name in found}
        seen = {**outputs, "objects": left}
        return (seen, seen) if "" in found else None

    def update(self, resource_id: str, olds: Properties, news: Properties, operation: Operation) -> Properties:
        try:
            self._wait(news, operation)
        except ResourceError as error:
            raise PartlyUpdated(str(error), news, interrupted=isinstance(error, Interrupted)) from None
        return {}

    def delete(self, resource_id: str, outputs: Properties, operation: Operation) -> None:
        """Nothing of it is in the cluster. But a destroy comes to it first, and everything else needs the way in."""
        end_if_lost(outputs)

    def interrupted(self) -> None:
        """A running create or update hears of it through its operation."""

    def _wait(self, inputs: Properties, operation: Operation) -> None:
        api = _api(inputs)
        name, shown = f"RayService {inputs['namespace']}/{inputs['name']}", ""
        seen, complete = Seen("the API server"), False
        while True:
            try:
                # At the start, when all of it has just been made, and at the end, after what may have been hours.
                if not complete:
                    _end_if_missing(api, inputs)
                    complete = True
                seen = look(api, inputs)
                if seen.serves:
                    _end_if_missing(api, inputs)
            except Unavailable as error:  # a control plane may restart while weights load
                seen = Seen("the API server to answer again", reasons=[str(error)])
            if seen.serves:
                return
            patience = min(_OPERATOR_SECONDS, inputs["readyTimeoutSeconds"])
            if not seen.taken_up and operation.elapsed > patience:
                raise ResourceError(
                    f"{name} was not taken up by a KubeRay operator within {patience:.0f} s; "
                    "see that one runs and watches this namespace (rayOperator.install: chart installs it)"
                )
            if operation.elapsed > inputs["readyTimeoutSeconds"]:
                why = "; ".join(seen.reasons) or seen.waiting
                raise ResourceError(
                    f"{name} does not serve after {inputs['readyTimeoutSeconds']} s (readyTimeoutSeconds): {why}"
                )
            if seen.waiting != shown:
                operation.say(seen.waiting, True)
                shown = seen.waiting
            operation.wait(seen.waiting, _POLL_SECONDS)


def _api(inputs: Properties) -> KubernetesApi:
    return KubernetesApi(*(inputs[key] for key in _WAY_IN))


def _path(inputs: Properties) -> str:
    return f"/apis/ray.io/v1/namespaces/{inputs['namespace']}/rayservices/{inputs['name']}"


def _end_if_missing(api: KubernetesApi, inputs: Properties) -> None:
    if lines := missing(api, inputs["namespace"], inputs["objects"]):
        raise ResourceError("\n".join(lines))


def look(api: KubernetesApi, inputs: Properties) -> Seen:
    """The service as it is now. Raises ResourceError for what waiting cannot mend."""
    namespace, name = inputs["namespace"], inputs["name"]
    service = api.get(_path(inputs))
    if service is None:
        raise ResourceError(f"RayService {namespace}/{name} was deleted by somebody while it was starting")
    status = service.get("status") or {}
    ready = next((c for c in status.get("conditions") or [] if c["type"] == "Ready"), {})
    if ready.get("reason") == "ValidationFailed":
        raise ResourceError(f"KubeRay refuses RayService {namespace}/{name}: {ready.get('message')}")
    if not status:
        return Seen("a KubeRay operator to take the RayService up", taken_up=False)
    cluster = _cluster_name(status)
    if not cluster:
        return Seen("KubeRay to make a Ray cluster")
    pods = api.list(f"/api/v1/namespaces/{namespace}/pods", labelSelector=f"ray.io/cluster={cluster}")
    up = sum(is_ready(pod) for pod in pods)
    state = api.get(f"/apis/ray.io/v1/namespaces/{namespace}/rayclusters/{cluster}") or {}
    told = refused_pods(state)
    end_if_for_good(api, namespace, name, told)
    reasons = [text for text in (told, summary(not_ready(pods))) if text]
    head_ready = any(pod["metadata"]["labels"].get("ray.io/node-type") == "head" and is_ready(pod) for pod in pods)
    if not head_ready:
        return Seen(f"the Ray head; {_because(reasons)}", reasons=reasons)
    details = _application(api, namespace, cluster, state, inputs["application"]["name"])
    if isinstance(details, str):
        return Seen(details, reasons=[details, *reasons])
    if details is None:
        return Seen(
            f"KubeRay to submit the application; pods {up}/{inputs['pods']} ready{_also(told)}", reasons=reasons
        )
    current = details.get("deployed_app_config") == inputs["application"]
    if details["status"] in FAILED and current:
        raise ResourceError(f"application {inputs['application']['name']!r} is {details['status']}: {failure(details)}")
    reasons.insert(0, failure(details))
    if current and details["status"] == "RUNNING" and as_wanted(details, inputs["application"]):
        if ready.get("status") == "True" and service["metadata"]["generation"] >= inputs["generation"]:
            return Seen(serves=True)
        waiting = f"Serve's proxies to be reachable; pods {up}/{inputs['pods']} ready{_also(told)}"
        return Seen(waiting, reasons=reasons)
    return Seen(f"{progress(details)}; pods {up}/{inputs['pods']} ready{_also(told)}", reasons=reasons)


def _application(
    api: KubernetesApi, namespace: str, cluster: str, state: dict[str, Any], application: str
) -> dict[str, Any] | str | None:
    """Serve's details of the application, None before it was submitted, or in a line why Serve cannot be asked."""
    head = state.get("status", {}).get("head", {}).get("serviceName") or f"{cluster}-head-svc"
    secret = api.get(f"/api/v1/namespaces/{namespace}/secrets/{cluster}") or {}
    token = base64.b64decode(secret.get("data", {}).get("auth_token", "")).decode()
    # Not Authorization: the API server takes that one for itself. KubeRay sends this one too.
    headers = {"x-ray-authorization": f"Bearer {token}"} if token else {}
    try:
        answer = api.proxy_get(namespace, head, _DASHBOARD_PORT, "/api/serve/applications/", headers)
    except Unavailable:
        return "the Ray dashboard to answer"
    except ResourceError as error:
        return str(error)
    details = ((answer or {}).get("applications") or {}).get(application)
    return details if details and details.get("deployed_app_config") else None


def _cluster_name(status: dict[str, Any]) -> str:
    """The Ray cluster that will serve: the pending one while there is one."""
    return next(
        (
            status[key]["rayClusterName"]
            for key in ("pendingServiceStatus", "activeServiceStatus")
            if status.get(key, {}).get("rayClusterName")
        ),
        "",
    )


def _because(reasons: list[str]) -> str:
    return "; ".join(reasons) or "no pod yet"


def _also(text: str) -> str:
    return f"; {text}" if text else ""
