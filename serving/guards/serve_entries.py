"""Entries under `deployments`, and other values that Serve checks against each other."""

from __future__ import annotations

from collections.abc import Iterator

from serving.guards.guard import Found, guard
from serving.guards.located import Located
from serving.guards.near_names import meant
from serving.guards.serve_options import INGRESS, deployments, engine_deployment_name
from serving.guards.view import Application, View

_NO_BUILD = "the application does not build, and a RayService stays at its old one, with the nodes already paid for"


def _entries(application: Application) -> Iterator[Located]:
    listed = application.node.at("deployments")
    return (one for one in (listed.entries() if listed else ()) if isinstance(one.value, dict))


@guard(
    "deployment-name-unknown",
    "error",
    what="An entry under `deployments` for a deployment that the application does not have",
    silently=_NO_BUILD,
    fix="write the name that Ray Serve LLM gives: Prefill:MODEL_ID, Decode:MODEL_ID, LLMServer:MODEL_ID with -- for / "
    "and _ for a dot, or OpenAiIngress",
    source="ray 2.55 serve/_private/application_state.py: override_deployment_info (`does not exist`)",
    holds={"ray": ">=2.55,<2.56"},
)
def deployment_name_unknown(view: View) -> Iterator[Found]:
    for application in view.applications:
        own = application.args.at("ingress_deployment_config", "name") or application.args.at(
            "ingress_cls_config", "ingress_cls"
        )
        if own is not None or any(engine.node.at("server_cls") is not None for engine in application.engines):
            continue  # names of classes that are not known here
        known = {INGRESS, *(engine_deployment_name(engine) for engine in application.engines)}
        for entry in _entries(application):
            name = entry.at("name")
            if name is not None and name.text is not None and name.text not in known:
                yield name, f"{name.text}{meant(name.text, known) or '; there are ' + ', '.join(sorted(known))}"


@guard(
    "queue-length-refused",
    "error",
    what="`max_queued_requests` that is 0, or below -1",
    silently=_NO_BUILD,
    fix="write -1 for no limit, or a number above 0",
    source="ray 2.55, 2.60 serve/schema.py: DeploymentSchema.validate_max_queued_requests; serve/_private/config.py",
    holds={"ray": ">=2.55,<2.61"},
)
def queue_length_refused(view: View) -> Iterator[Found]:
    for deployment in deployments(view):
        for place in (deployment.config, deployment.entry):
            given = place.at("max_queued_requests") if place is not None else None
            if given is not None and given.integer is not None and given.integer < 1 and given.integer != -1:
                yield given, f"max_queued_requests: {given.value}"


@guard(
    "external-scaler-beside-autoscaling",
    "error",
    what="`external_scaler_enabled` beside an entry that autoscales",
    silently="`serve deploy` fails; a RayService stays without the application, and only its status tells why",
    fix="keep one of them",
    source="ray 2.55, 2.60 serve/schema.py: ServeApplicationSchema.validate_external_scaler_and_autoscaling",
    holds={"ray": ">=2.55,<2.61"},
)
def external_scaler_beside_autoscaling(view: View) -> Iterator[Found]:
    for application in view.applications:
        said = application.node.at("external_scaler_enabled")
        if said is None or said.value is not True:
            continue
        for entry in _entries(application):
            count, settings = entry.at("num_replicas"), entry.at("autoscaling_config")
            if count is not None and count.value == "auto":
                yield count, "num_replicas: auto"
            elif settings is not None and settings.value is not None:
                yield settings, "autoscaling_config"
