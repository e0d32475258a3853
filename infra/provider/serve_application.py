"""One Ray Serve application on any Ray cluster, put there over the dashboard's REST API.

Inputs: address, tokenFile, caFile, headersFile, rayVersion (expected), application (ServeApplicationSchema),
httpOptions {host, port}, serviceUrl, readyTimeoutSeconds, head (id of a LocalRayCluster, absent on a foreign cluster).
Outputs: metricsUrls, deployments [names].

Serve's API is declarative: a PUT replaces every declared application. Each change here therefore repeats the configs of
the applications that are not ours, and removing ours leaves them running.
"""

import re
from contextlib import suppress
from typing import Any

from infra.provider.ray_api import RayApi
from infra.provider.resource import Interrupted, Operation, PartlyUpdated, Properties, ResourceError

_EXCEPTION = re.compile(r"[\w.]*(Error|Exception|Exit|Interrupt)\b")
_REASON_CHARACTERS = 500
_INPUTS = (
    *("address", "serviceUrl", "tokenFile", "caFile", "headersFile", "head"),
    *("rayVersion", "application", "httpOptions", "readyTimeoutSeconds"),
)
_PATIENCE_SECONDS = 60.0  # two requests that time out (ray_api.py)
FAILED = ("DEPLOY_FAILED", "UNHEALTHY")
_REMOVE_SECONDS = 120  # engines get Serve's graceful shutdown time (20 s) and then end; measured 8 to 40 s


class ServeApplication:
    """Implements infra.provider.resource.Resource."""

    def check(self, olds: Properties, news: Properties) -> list[str]:
        if news.get("head"):
            return []  # our own head: it is started by the same update
        try:
            found, there = _api(news).version(), _api(news).applications()
        except ResourceError as error:
            return [str(error)]
        if found != news["rayVersion"]:
            text = f"Ray at {news['address']} is {found}, this stack is built for {news['rayVersion']} (versions.toml)"
            return [f"{text}; deploy that version there, or choose the platform that matches"]
        name = news["application"]["name"]
        # The same config is what an interrupted update of this stack left; another one is somebody's.
        if not olds and name in there and there[name].get("deployed_app_config") != news["application"]:
            return [f"Ray at {news['address']} already serves an application {name!r} that this stack did not deploy"]
        return []

    def changed(self, olds: Properties, news: Properties) -> bool | list[str]:
        if olds.get("application", {}).get("name") != news["application"]["name"]:
            return ["application"]
        if olds.get("address") != news["address"] and not news.get("head"):
            return ["address"]
        return any(olds.get(key) != news.get(key) for key in _INPUTS)

    def planned(self, inputs: Properties) -> Properties:
        return {}

    def create(self, inputs: Properties, operation: Operation) -> tuple[str, Properties]:
        try:
            return inputs["application"]["name"], self._deploy(inputs, operation)
        except ResourceError as error:
            # Nothing half-made stays behind; what goes wrong with that must not hide what went wrong first.
            with suppress(ResourceError):
                if isinstance(error, Interrupted):
                    self._withdraw(inputs)  # the user is waiting: Serve ends the replicas on its own
                else:
                    self._remove(inputs, operation)
            raise

    def read(self, resource_id: str, outputs: Properties) -> tuple[Properties, Properties] | None:
        try:
            details = _api(outputs).applications().get(resource_id)
        except ResourceError:
            if outputs.get("head"):
                return None  # the local head is gone, and the application with it
            raise
        if details is None or details.get("deployed_app_config") is None:
            return None
        inputs = {key: outputs[key] for key in _INPUTS if key in outputs}
        return {**inputs, "application": details["deployed_app_config"]}, outputs

    def update(self, resource_id: str, olds: Properties, news: Properties, operation: Operation) -> Properties:
        try:
            return self._deploy(news, operation)
        except ResourceError as error:
            # Serve was told: the state has to say so, or going back to the old settings would look like no change.
            raise PartlyUpdated(str(error), news, interrupted=isinstance(error, Interrupted)) from None

    def delete(self, resource_id: str, outputs: Properties, operation: Operation) -> None:
        try:
            self._remove(outputs, operation)
        except ResourceError as error:
            forget = "if that cluster is gone for good, forget the application with `pulumi state delete`"
            raise ResourceError(f"{error}; {forget}") from None

    def interrupted(self) -> None:
        """A running create or update hears of it through its operation."""

    def _deploy(self, inputs: Properties, operation: Operation) -> Properties:
        api, wanted = _api(inputs), inputs["application"]
        api.deploy([*_others(api, wanted["name"]), wanted], inputs["httpOptions"])
        shown = ""
        while True:
            details = _patiently(api, operation).get(wanted["name"])
            if details is None:
                raise ResourceError(f"application {wanted['name']!r} was removed by somebody while it was starting")
            if details["status"] in FAILED:
                raise ResourceError(f"application {wanted['name']!r} is {details['status']}: {failure(details)}")
            if details["status"] == "RUNNING" and as_wanted(details, wanted):
                break
            waiting = progress(details)
            if waiting != shown:
                operation.say(waiting, True)
                shown = waiting
            operation.wait(waiting)
            if operation.elapsed > inputs["readyTimeoutSeconds"]:
                limit = f"{inputs['readyTimeoutSeconds']} s (readyTimeoutSeconds)"
                raise ResourceError(f"application {wanted['name']!r} did not serve within {limit}: {failure(details)}")
        _check_port(api, inputs)
        return {"metricsUrls": api.metrics_urls(), "deployments": sorted(details["deployments"])}

    def _remove(self, properties: Properties, operation: Operation) -> None:
        name, deadline = properties["application"]["name"], operation.elapsed + _REMOVE_SECONDS
        if properties.get("head") and not _reachable(properties):
            return  # our own head is gone, and the application with it
        self._withdraw(properties)
        while name in _patiently(_api(properties), operation):
            operation.wait(f"the replicas of {name!r} to end")
            if operation.elapsed > deadline:
                raise ResourceError(f"application {name!r} is still being removed after {_REMOVE_SECONDS} s")

    def _withdraw(self, properties: Properties) -> None:
        name, api = properties["application"]["name"], _api(properties)
        if name in api.applications():
            api.deploy(_others(api, name), properties["httpOptions"])


def _api(properties: Properties) -> RayApi:
    return RayApi(
        properties["address"],
        token_file=properties.get("tokenFile"),
        ca_file=properties.get("caFile"),
        headers_file=properties.get("headersFile"),
    )


def _reachable(properties: Properties) -> bool:
    """Whether the head answers; a head that is gone has taken its token file along."""
    try:
        return _api(properties).reachable()
    except ResourceError:
        return False


def _patiently(api: RayApi, operation: Operation) -> dict[str, Any]:
    """The applications, through a dashboard that is busy: one that does not answer for a while has not failed."""
    deadline = operation.elapsed + _PATIENCE_SECONDS
    while True:
        try:
            return api.applications()
        except ResourceError:
            if operation.elapsed > deadline:
                raise
            operation.wait("the Ray dashboard to answer again")


def _others(api: RayApi, name: str) -> list[dict[str, Any]]:
    """Configs of the declared applications that are not ours, to be declared again unchanged."""
    details = api.applications().items()
    return [entry["deployed_app_config"] for other, entry in details if other != name and entry["deployed_app_config"]]


def as_wanted(details: dict[str, Any], wanted: dict[str, Any]) -> bool:
    """Whether RUNNING speaks of this config: right after a PUT, Serve still reports the one before."""
    if details["deployed_app_config"] != wanted:
        return False
    for override in wanted.get("deployments", []):
        replicas = details["deployments"].get(override["name"], {}).get("replicas", [])
        if [replica["state"] for replica in replicas] != ["RUNNING"] * override["num_replicas"]:
            return False
    return True


def _check_port(api: RayApi, inputs: Properties) -> None:
    """Serve keeps the port it was first started with; a stack that asks for another must hear of it."""
    options = api.http_options()
    if options and options["port"] != inputs["httpOptions"]["port"] and inputs.get("head"):
        raise ResourceError(f"Serve already listens on port {options['port']}, not {inputs['httpOptions']['port']}")


def progress(details: dict[str, Any]) -> str:
    """What the application waits for, deployment by deployment, with the reason Serve gives for a failed start."""
    if not details["deployments"]:
        return "Serve to build the application"
    parts = []
    for name, deployment in details["deployments"].items():
        running = sum(replica["state"] == "RUNNING" for replica in deployment["replicas"])
        part = f"{name} {running}/{deployment['target_num_replicas']}"
        if "failed to start" in deployment["message"]:
            part += f" (retrying: {reason(deployment['message'])})"
        parts.append(part)
    return "replicas " + ", ".join(parts)


def failure(details: dict[str, Any]) -> str:
    """The replica's own error message where there is one, else the application's."""
    for name, deployment in details["deployments"].items():
        if deployment["message"] and deployment["status"] != "HEALTHY":
            return f"{name}: {reason(deployment['message'])}"
    return reason(details["message"]) if details["message"] else progress(details)


def reason(message: str) -> str:
    """What a Serve message says went wrong, in one line: the last exception of a traceback, else the first line.

    Serve's messages wrap the replica's traceback; the exception begins with the last line that looks like `Name: text`,
    and may go on over several lines (pydantic's do).
    """
    lines = [line.strip() for line in message.splitlines() if line.strip()]
    starts = [number for number, line in enumerate(lines) if _EXCEPTION.match(line)]
    told = " ".join(lines[starts[-1] :]) if starts else (lines or ["no message"])[0]
    return told if len(told) <= _REASON_CHARACTERS else f"{told[:_REASON_CHARACTERS]} ..."
