"""Entries of `applications` as Serve takes them: where their code is, their routes, names and arguments."""

from __future__ import annotations

from collections.abc import Iterator

from serving.guards.guard import Found, guard
from serving.guards.located import Located
from serving.guards.near_names import meant
from serving.guards.read_serve import BUILDERS, builder
from serving.guards.serve_options import older
from serving.guards.view import View

_NO_BUILD = "`serve deploy` fails; a RayService stays without the application, and only its status tells why"
_SCHEMA = "ray 2.55, 2.60 serve/schema.py: "
# What is all but equal to a builder's path is one: `my_llm:build_openai_app` is somebody's own.
_ALL_BUT_EQUAL = 0.9
_MODULE = "ray.serve.llm"
# Its functions that build a deployment, and so take more than the one argument that Serve gives.
_OF_DEPLOYMENTS = ("build_llm_deployment", "build_dp_deployment")


def _of(config: Located) -> Iterator[Located]:
    """The applications of a Serve config."""
    listed = config.at("applications")
    return (one for one in (listed.entries() if listed else ()) if isinstance(one.value, dict))


def _entries(view: View) -> Iterator[Located]:
    return (one for config in view.serve for one in _of(config))


def _wrong_path(path: str) -> str | None:
    """What Serve's schema says against the form of an import path."""
    if path.count(":") > 1:
        return "more than one colon"
    mark = ":" if ":" in path else "."
    if mark not in path:
        return "neither a dot nor a colon between module and builder"
    if path.startswith(mark) or path.endswith(mark):
        return f"begins or ends with {mark!r}"
    return None


@guard(
    "import-path-refused",
    "error",
    what="An `import_path` that is none, or one of Ray Serve LLM that does not exist",
    silently=_NO_BUILD,
    fix="write `ray.serve.llm:build_pd_openai_app`, `ray.serve.llm:build_openai_app`, or `module:builder` of your own",
    source=_SCHEMA + "import_path_format_valid; serve/llm/__init__.py; _private/api.py: a builder takes one argument",
    holds={"ray": ">=2.55,<2.61"},
)
def import_path_refused(view: View) -> Iterator[Found]:
    for one in _entries(view):
        path = one.at("import_path")
        if path is None or path.text is None:
            continue
        name, wrong = builder(path), _wrong_path(path.text)
        if wrong:
            yield path, f"{path.text!r}: {wrong}"
        elif name not in BUILDERS:
            near = meant(name, BUILDERS, _ALL_BUT_EQUAL)
            module, _, attribute = name.partition(":")
            if attribute in _OF_DEPLOYMENTS and module == _MODULE:
                yield path, f"{attribute} builds a deployment and no application"
            elif near or (module == _MODULE and older(view, "ray", "2.56")):
                yield path, f"{path.text}{near}"


@guard(
    "application-without-args",
    "error",
    what="An application of Ray Serve LLM without `args`: no model, no engine",
    silently=_NO_BUILD,
    fix="write `args: {prefill_config: ..., decode_config: ...}` or `args: {llm_configs: [...]}` beside `import_path`",
    source="ray 2.55, 2.60 llm/_internal/serve/core/ingress/builder.py: LLMServingArgs, "
    "prefill_decode/builder.py: PDServingArgs",
    holds={"ray": ">=2.55,<2.61"},
)
def application_without_args(view: View) -> Iterator[Found]:
    for one in _entries(view):
        path, args = one.at("import_path"), one.at("args")
        if builder(path) in BUILDERS and (args is None or args.value is None):
            yield args or path or one, f"{builder(path)} without args"


@guard(
    "route-prefix-refused",
    "error",
    what="A `route_prefix` without a slash before it, with one behind it, or with a wildcard",
    silently=_NO_BUILD,
    fix="write `/`, or `/name`",
    source="ray 2.55, 2.60 serve/_private/utils.py: validate_route_prefix",
    holds={"ray": ">=2.55,<2.61"},
)
def route_prefix_refused(view: View) -> Iterator[Found]:
    for one in _entries(view):
        route = one.at("route_prefix")
        if route is None or route.text is None:
            continue
        if not route.text.startswith("/"):
            yield route, f"{route.text!r} does not begin with a slash"
        elif route.text != "/" and route.text.endswith("/"):
            yield route, f"{route.text!r} ends with a slash"
        elif "{" in route.text or "}" in route.text:
            yield route, f"{route.text!r} has a wildcard"


@guard(
    "route-prefix-none",
    "warning",
    what="An application of Ray Serve LLM with `route_prefix: null`",
    silently="its engines start and report healthy, and no request of a client reaches them: the proxy has no route",
    fix="write `route_prefix: /`, or leave it out",
    source="ray 2.55, 2.60 serve/_private/application_state.py: override_deployment_info, _check_routes",
    holds={"ray": ">=2.55,<2.61"},
)
def route_prefix_none(view: View) -> Iterator[Found]:
    for application in view.applications:
        route = application.node.at("route_prefix")
        if route is not None and route.value is None:
            yield route, "no route"


@guard(
    "applications-alike",
    "error",
    what="Two applications of one name or one route, or one whose name is empty",
    silently=_NO_BUILD,
    fix="give each application a `name` and a `route_prefix` of its own; left out they are `default` and `/`",
    source=_SCHEMA + "application_names_unique, application_routes_unique, application_names_nonempty",
    holds={"ray": ">=2.55,<2.61"},
)
def applications_alike(view: View) -> Iterator[Found]:
    for config in view.serve:
        seen: set[tuple[str, str]] = set()
        for one in _of(config):
            for key, default in (("name", "default"), ("route_prefix", "/")):
                given = one.at(key)
                value = default if given is None else given.text
                if (key, value) in seen:
                    yield given or one, f"{key} {value} twice"
                elif key == "name" and value == "":
                    yield given or one, "an empty name"
                if value is not None:
                    seen.add((key, value))


@guard(
    "application-host-refused",
    "error",
    what="`host` or `port` in an application",
    silently=_NO_BUILD,
    fix="write them under `http_options`",
    source=_SCHEMA + "nested_host_and_port",
    holds={"ray": ">=2.55,<2.61"},
)
def application_host_refused(view: View) -> Iterator[Found]:
    for one in _entries(view):
        for key in ("host", "port"):
            if (given := one.at(key)) is not None:
                yield given, f"{key}: {given.value}"
