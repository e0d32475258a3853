"""The KV connector of an engine: its name and its role."""

from __future__ import annotations

import re
from collections.abc import Iterator

from serving.guards.guard import Found, guard
from serving.guards.near_names import meant
from serving.guards.read_kubernetes import role_of_labels
from serving.guards.transfer import NIXL, connectors, known, pairs, read_release, whole
from serving.guards.view import Engine, Role, View

# kv_connector/factory.py of vLLM: what each release registers.
_IN_ALL = {"ExampleConnector", "ExampleHiddenStatesConnector", "LMCacheConnectorV1", "LMCacheMPConnector"} | {
    *("NixlConnector", "MultiConnector", "MoRIIOConnector", "OffloadingConnector", "DecodeBenchConnector"),
    *("MooncakeConnector", "FlexKVConnectorV1"),
}
_IN_0_18 = frozenset(_IN_ALL | {"P2pNcclConnector"})
_IN_0_25_TO_0_29 = frozenset(
    _IN_ALL
    | {"NixlPullConnector", "NixlPushConnector", "MooncakeStoreConnector", "SimpleCPUOffloadConnector"}
    | {"HF3FSKVConnector"}
)

_ROLES = ("kv_producer", "kv_consumer", "kv_both")

# kv_transfer/factory.py BUILTIN_BACKENDS of Ray, and those of vLLM's that need what these do: NIXL's set host, port and
# engine id of each replica, MoRIIO's set ports and tell decode where prefill is.
_RAY_2_55 = frozenset({"LMCacheConnectorV1", "NixlConnector", "MultiConnector"})
_RAY_2_57 = _RAY_2_55 | {"MoRIIOConnector"}
_NEED_SETUP = NIXL | {"MoRIIOConnector"}


@guard(
    "kv-connector-unknown",
    "error",
    what="A KV connector of a name that vLLM does not know",
    silently="Ray warns and goes on without setting anything up; the replica fails when vLLM starts, and restarts",
    fix="write a connector that this vLLM registers, or give kv_connector_module_path for one of your own",
    source="vllm 0.18, 0.25, 0.29 kv_connector/factory.py; ray 2.55 kv_transfer/factory.py get_backend_class",
)
def kv_connector_unknown(view: View) -> Iterator[Found]:
    release = read_release(view)
    names = _IN_0_18 if release == "0.18" else _IN_0_25_TO_0_29 if release else _IN_0_18 | _IN_0_25_TO_0_29
    for engine in view.moving():
        for one in connectors(engine):
            if one.name is None or not one.called or one.called in names or "kv_connector_module_path" in one.values:
                continue
            near = meant(one.called, names, 0.85)  # all end alike
            # Of a release that was not read: it may know more, but a slip of the pen is one.
            if release or near:
                yield one.name, f"{one.called}{near}"


@guard(
    "kv-connector-missing",
    "error",
    what="An engine that should move KV, and is told of no connector",
    silently="vLLM takes kv_transfer_config without one for none: decode computes every prompt again; with Ray 2.55 "
    "every replica fails (`Connector type is not specified`), unless the whole object is empty",
    fix="write kv_connector: NixlConnector, and kv_role",
    source="vllm 0.18 config/kv_transfer.py: is_kv_transfer_instance; ray 2.55 llm_config.py: "
    "_setup_kv_connector_backend, multi_connector.py, prefill_decode/builder.py: _validate_kv_transfer_config",
)
def kv_connector_missing(view: View) -> Iterator[Found]:
    for engine in view.moving():
        given = (engine.kv or {}).get("kv_connector")
        if given is None or given.value in (None, ""):
            yield given or whole(engine), "no kv_connector"
        held = engine.kv_extra("connectors")
        for child in held.entries() if held else ():
            named = child.at("kv_connector")
            if named is None or named.value in (None, ""):
                yield named or child, "no kv_connector in a MultiConnector's"
    for application in view.applications:
        if application.pd and application.engines and all(_has_none(engine) for engine in application.engines):
            yield from ((whole(engine), f"no kv_transfer_config for {engine.role}") for engine in application.engines)


@guard(
    "kv-connector-on-one-side",
    "error",
    what="A prefill or decode engine without kv_transfer_config beside one that has it",
    silently="without Ray every request is answered: decode computes each prompt again, and no KV moves",
    fix="give both sides the same kv_transfer_config",
    source="vllm#26896; ray 2.55 prefill_decode/builder.py _validate_kv_transfer_config (refuses)",
)
def kv_connector_on_one_side(view: View) -> Iterator[Found]:
    for application in view.applications:
        both = [application.engine("prefill"), application.engine("decode")]
        given = [engine for engine in both if engine is not None]
        if application.pd and len(given) == 2 and any(engine.kv is not None for engine in given):
            yield from ((engine.node, engine.role) for engine in given if _has_none(engine))
    plain = [engine for engine in view.engines if not engine.by_ray]
    without = [engine for engine in plain if _has_none(engine) and _labelled(engine) is not None]
    moving = [(other, _labelled(other)) for other in plain if other.kv is not None] if without else []
    for engine in without:
        said = _labelled(engine)
        if any(role not in (None, said) and _serve_one(engine, other) for other, role in moving):
            yield engine.node, f"labelled {said}"


def _has_none(engine: Engine) -> bool:
    given = engine.argument("kv_transfer_config")
    return (given is None or given.value is None) and (engine.by_ray or not _more_arguments(engine))


def _more_arguments(engine: Engine) -> bool:
    """Whether a command has arguments that do not stand in it: those of a file, or of a variable."""
    words = [str(at.value) for key in ("command", "args") if (at := engine.node.at(key)) is not None]
    return engine.argument("config") is not None or any(re.search(r"(^|[\s'\"])\$[({\w@*]", text) for text in words)


def _labelled(engine: Engine) -> Role | None:
    return role_of_labels(engine.pod) if engine.pod is not None else None


def _serve_one(engine: Engine, other: Engine) -> bool:
    return engine.model is not None and other.model is not None and engine.model.value == other.model.value


@guard(
    "kv-connector-differs",
    "error",
    what="Prefill and decode have different KV connectors",
    silently="both start and report healthy; decode cannot read what prefill offers, and fails or computes again",
    fix="write the same kv_connector on both sides",
    source="vllm 0.29 nixl/metadata.py (push and pull are part of the handshake); ray 2.55, 2.60 accept it",
)
def kv_connector_differs(view: View) -> Iterator[Found]:
    # One implementation under two names (vLLM 0.25 to 0.29, factory.py).
    alike = {"NixlPullConnector": "NixlConnector"}
    for prefill, decode in pairs(view):
        if prefill.kv is None or decode.kv is None:
            continue
        one, other = connectors(prefill)[0], connectors(decode)[0]
        if one.called and other.called and other.name is not None:
            # A MultiConnector may hold the other side's.
            held = {alike.get(c.called, c.called) for e in (prefill, decode) for c in connectors(e)[1:]}
            names = {alike.get(c.called, c.called) for c in (one, other)}
            if len(names) > 1 and not (names - {"MultiConnector"}) & held:
                yield other.name, f"prefill {one.called}, decode {other.called}"


@guard(
    "kv-connector-without-ray",
    "error",
    what="A KV connector that this Ray does not set up",
    silently="Ray warns once; every replica then offers NIXL's KV at localhost:5600, where no other node finds it, and "
    "of MoRIIO none is told the ports and the peer of its own",
    fix="write NixlConnector, which pulls; MoRIIOConnector needs Ray 2.57",
    source="ray 2.55 to 2.60 kv_transfer/factory.py BUILTIN_BACKENDS; vllm 0.29 envs.py:225",
)
def kv_connector_without_ray(view: View) -> Iterator[Found]:
    version = known(view, "ray")
    if version is not None and not (2, 55) <= version.release[:2] <= (2, 60):
        return
    backends = _RAY_2_55 if version is not None and version.release[:2] < (2, 57) else _RAY_2_57
    for engine in view.moving():
        for one in connectors(engine) if engine.by_ray else ():
            own = "VLLM_NIXL_SIDE_CHANNEL_HOST" in engine.environment and one.nixl
            if one.name is not None and one.called in _NEED_SETUP - backends and not own:
                yield one.name, one.called


@guard(
    "kv-role-missing",
    "error",
    what="A KV connector without a kv_role, or with one that does not exist",
    silently="Ray accepts it; every replica fails when vLLM builds its configuration, and is started again",
    fix="set kv_role: kv_both, or from vLLM 0.25 on kv_producer for prefill and kv_consumer for decode",
    source="vllm 0.18 and 0.29 config/kv_transfer.py __post_init__",
)
def kv_role_missing(view: View) -> Iterator[Found]:
    for engine in view.moving():
        for one in connectors(engine)[:1]:  # those in a MultiConnector inherit the role
            role = one.values.get("kv_role")
            if one.called and (role is None or role.value is None):
                yield whole(engine), "no kv_role"
            elif role is not None and role.text is not None and role.text not in _ROLES:
                yield role, f"{role.text}{meant(role.text, _ROLES, 0.4)}"


@guard(
    "kv-role-swapped",
    "warning",
    what="Prefill is told to consume KV, or decode to produce it",
    silently="MoRIIO and Mooncake then move nothing; NIXL of vLLM 0.18 does not look, that of 0.29 only where ranks "
    "divide context or layers, and a later one may",
    fix="kv_producer for prefill, kv_consumer for decode",
    source="vllm 0.18 moriio_connector.py:263, mooncake_connector.py:255-365; vllm 0.29 nixl/connector.py:93",
)
def kv_role_swapped(view: View) -> Iterator[Found]:
    wrong = {"prefill": "kv_consumer", "decode": "kv_producer"}
    for engine in view.moving():
        role = (engine.kv or {}).get("kv_role")
        said = engine.role if engine.by_ray else _labelled(engine)
        if role is not None and said in wrong and role.value == wrong[said]:
            yield role, f"{role.value} in {said}"


@guard(
    "kv-role-deprecated",
    "note",
    what="kv_role kv_both with NIXL",
    silently="vLLM logs once that a later release will refuse it",
    fix="kv_producer for prefill, kv_consumer for decode",
    source="vllm 0.25 nixl/connector.py:122, 0.29 :93",
    holds={"vllm": ">=0.25"},
)
def kv_role_deprecated(view: View) -> Iterator[Found]:
    for engine in view.moving():
        role = (engine.kv or {}).get("kv_role")
        if known(view, "vllm") and role is not None and role.value == "kv_both" and connectors(engine)[0].nixl:
            yield role, engine.role
