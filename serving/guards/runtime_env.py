"""Values of a `runtime_env` that Ray refuses."""

from __future__ import annotations

from collections.abc import Iterator

from serving.guards.guard import Found, guard
from serving.guards.located import Located
from serving.guards.view import View


def _of_serve(view: View) -> Iterator[Located]:
    """Those of Serve's own schema: of applications, and of the entries under their `deployments`."""
    for application in view.applications:
        listed = application.node.at("deployments")
        places = [application.node.at("runtime_env")]
        places += [entry.at("ray_actor_options", "runtime_env") for entry in (listed.entries() if listed else ())]
        yield from (place for place in places if place is not None)


def _of_engines(view: View) -> Iterator[Located]:
    for application in view.applications:
        for engine in application.engines:
            places = (
                engine.node.at("runtime_env"),
                engine.node.at("deployment_config", "ray_actor_options", "runtime_env"),
            )
            yield from (place for place in places if place is not None)


@guard(
    "variable-no-text",
    "error",
    what="A variable under `env_vars` whose value YAML reads as a number or a truth value",
    silently="Ray takes nothing but text there: the application does not build, or its replicas fail to start, again "
    "and again",
    fix='put the value in quotes: `NCCL_DEBUG_LEVEL: "1"`',
    source="ray 2.55, 2.60 _private/runtime_env/validation.py: parse_and_validate_env_vars",
    holds={"ray": ">=2.55,<2.61"},
)
def variable_no_text(view: View) -> Iterator[Found]:
    for place in (*_of_serve(view), *_of_engines(view)):
        variables = place.at("env_vars")
        for name, value in variables.items() if variables is not None else ():
            if not isinstance(value.value, str):
                yield value, f"{name}: {value.value}"


@guard(
    "working-dir-local",
    "error",
    what="A folder of one machine as `working_dir` or in `py_modules`",
    silently="`serve deploy` fails; a RayService stays without the application, and only its status tells why",
    fix="give a URI that every node can read, as https://.../code.zip or s3://..., or put the code in the image",
    source="ray 2.55, 2.60 serve/schema.py: runtime_env_contains_remote_uris",
    holds={"ray": ">=2.55,<2.61"},
)
def working_dir_local(view: View) -> Iterator[Found]:
    for place in _of_serve(view):
        modules = place.at("py_modules")
        for given in (place.at("working_dir"), *(modules.entries() if modules else ())):
            if given is not None and given.text is not None and "://" not in given.text:
                yield given, given.text
