"""Ports at which engines tell each other where their KV is."""

from __future__ import annotations

import re
from collections.abc import Iterator

from serving.guards.guard import Found, guard
from serving.guards.located import Located
from serving.guards.transfer import (
    by_nixl,
    connectors,
    has_callback,
    known,
    literal,
    may_be_hidden,
    may_meet,
    most_replicas,
    whole,
)
from serving.guards.view import Engine, View

_PORT = "VLLM_NIXL_SIDE_CHANNEL_PORT"
_BASE = "NIXL_SIDE_CHANNEL_PORT_BASE"
# vllm 0.18 envs.py:1274-1280, 0.29 :1655-1660.
_DEFAULT_PORT = 5600
# Ray 2.56 to 2.60: kv_transfer/nixl.py and prefill_decode/builder.py. Ray 2.55 takes any free port.
_BASES_OF_2_56 = {"prefill": 20000, "decode": 22000}
# Linux' default net.ipv4.ip_local_port_range.
_EPHEMERAL = range(32768, 61000)
_MOST = 4096  # replicas, or ranks: beyond it a number is a slip
_MORI_BASES = ("MORI_HANDSHAKE_PORT_BASE", "MORI_NOTIFY_PORT_BASE")

_HANGS = "the second to bind gets an error in a thread, and its engine waits for it for ever and is never ready"
_BIND = "vllm 0.18 nixl_connector.py:669-704, 0.29 nixl/base_scheduler.py:322-356"


@guard(
    "side-channel-base-of-several",
    "warning",
    what=f"{_BASE} for several replicas of a node, from which Ray 2.55 gives all of them the same port",
    silently=f"the replica's rank is lost to an error that Ray swallows; {_HANGS}",
    fix=f"leave {_BASE} out, so that every replica takes a free port, or let a callback set {_PORT}",
    source=f"ray 2.55 kv_transfer/base.py:62-74 (rc.rank is an object), ray#58473; {_BIND}",
    holds={"ray": ">=2.55,<2.56"},
)
def side_channel_base_of_several(view: View) -> Iterator[Found]:
    for engine in _under_ray(view):
        base = engine.node.at("experimental_configs", _BASE)
        data_parallel = engine.integer("data_parallel_size", 1) > 1  # then Ray counts by the rank in the group
        if (
            base is not None
            and not data_parallel
            and _PORT not in engine.environment
            and may_meet(view, engine, engine)
        ):
            yield base, f"{base.value} for {most_replicas(engine)} replicas"


@guard(
    "side-channel-bases-overlap",
    "warning",
    what="Prefill and decode take side-channel ports from the same range on one node",
    silently=_HANGS,
    fix=f"give decode a {_BASE} above prefill's last port: base + replicas x ranks",
    source=f"ray#60057; ray 2.56 to 2.60 prefill_decode/builder.py (22000 for decode); {_BIND}",
)
def side_channel_bases_overlap(view: View) -> Iterator[Found]:
    version = known(view, "ray")
    defaults = _BASES_OF_2_56 if version is not None and version.release[:2] >= (2, 56) else {}
    for application in view.applications:
        prefill, decode = application.engine("prefill"), application.engine("decode")
        both = [engine for engine in (prefill, decode) if engine is not None and _set_up_by_ray(engine)]
        if len(both) < 2 or any(_PORT in engine.environment for engine in both) or not may_meet(view, both[0], both[1]):
            continue
        given = [engine.node.at("experimental_configs", _BASE) for engine in both]
        ranked = version is None or version.release[:2] > (2, 55)  # 2.55 counts no replicas
        ports = [_ports(e, at, defaults.get(e.role), ranked) for e, at in zip(both, given, strict=True)]
        at = given[1] or given[0]
        if at is not None and ports[0] & ports[1]:
            yield at, f"prefill from {min(ports[0])}, decode from {min(ports[1])}"


def _under_ray(view: View) -> list[Engine]:
    return [engine for engine in view.moving() if _set_up_by_ray(engine)]


def _set_up_by_ray(engine: Engine) -> bool:
    return engine.by_ray and by_nixl(engine) and not has_callback(engine)


def _ports(engine: Engine, base: Located | None, default: int | None, ranked: bool) -> set[int]:
    """Ports that an engine's replicas bind: one each, a replica's number of ranks apart."""
    start, parallel = base.integer if base is not None else default, engine.integer("data_parallel_size", 1)
    if start is None:
        return set()
    if 1 < parallel <= _MOST:  # vLLM adds the data parallel index to what Ray has added it to (vllm 0.18; ray#65756)
        return {start + 2 * rank for rank in range(parallel)}
    replicas = min(most_replicas(engine), _MOST) if ranked else 1
    return {start + replica * engine.gpus for replica in range(replicas)}


def _overlap(one: range, other: range) -> bool:
    return max(one.start, other.start) < min(one.stop, other.stop)


@guard(
    "side-channel-port-fixed",
    "warning",
    what=f"{_PORT} set by hand for replicas under Ray that share a node",
    silently=f"Ray leaves a port that is set alone, so all replicas take it; {_HANGS}",
    fix=f"remove {_PORT}: Ray chooses one for each replica",
    source=f"ray 2.55 and 2.60 kv_transfer/nixl.py _set_side_channel_port; {_BIND}",
)
def side_channel_port_fixed(view: View) -> Iterator[Found]:
    engines = _under_ray(view)
    for engine in engines:
        port = literal(engine, _PORT)
        if port is None:
            continue
        for other in engines:
            if literal(other, _PORT) == port and may_meet(view, engine, other):
                yield engine.environment[_PORT], f"{_PORT}={port}"
                break


@guard(
    "side-channel-port-clash",
    "warning",
    what="Engines in pods with the node's network listen at the same side-channel port",
    silently=f"on one node, {_HANGS}",
    fix=f"give every engine of a node its own {_PORT}, take hostNetwork out, or keep them apart by podAntiAffinity",
    source=f"vllm 0.18 envs.py:1278 (5600), 0.29 :1659; {_BIND}",
)
def side_channel_port_clash(view: View) -> Iterator[Found]:
    engines = [engine for engine in view.moving() if not engine.by_ray and by_nixl(engine) and _small_on_host(engine)]
    for engine in engines:
        port = _port(engine)
        several = (engine.replicas or 1) > 1 and not _claimed(engine)
        others = [o for o in engines if o is not engine and not _claimed(o) & _claimed(engine)]
        if port is not None and (several or any(_port(other) == port for other in others)):
            yield engine.environment.get(_PORT) or whole(engine), f"port {port}"


def _small_on_host(engine: Engine) -> bool:
    """A pod on the node's network, beside which a node of eight GPUs has room for another, and nothing forbids it."""
    pod = engine.pod
    if pod is None or not pod.host_network or not 0 < pod.gpus <= 4:
        return False
    return pod.node.at("affinity", "podAntiAffinity") is None and pod.node.at("topologySpreadConstraints") is None


def _claimed(engine: Engine) -> set[int]:
    """Ports of the node that a pod's containers declare: Kubernetes puts no two pods with one of them on a node."""
    listed = engine.pod.container.at("ports") if engine.pod is not None else None
    ports = [entry.at("containerPort") for entry in listed.entries()] if listed is not None else []
    return {port.integer for port in ports if port is not None and port.integer is not None}


def _port(engine: Engine) -> int | None:
    """Where the port is written down, or none is set anywhere that can be seen."""
    if _PORT in engine.environment:
        value = literal(engine, _PORT)
        return int(value) if value is not None and re.fullmatch(r"[0-9]{1,5}", value) else None
    return None if may_be_hidden(engine, _PORT) else _DEFAULT_PORT


@guard(
    "side-channel-port-ephemeral",
    "warning",
    what="A side-channel port in the range from which Linux hands out ports to anybody",
    silently=f"now and then another connection has it when an engine starts: {_HANGS}",
    fix="take ports below 32768, with room for replicas x ranks",
    source="Linux ip-sysctl net.ipv4.ip_local_port_range (32768-60999); " + _BIND,
)
def side_channel_port_ephemeral(view: View) -> Iterator[Found]:
    for engine in view.moving():
        ranks = max(1, engine.gpus)
        replicas = most_replicas(engine)
        if by_nixl(engine) and (value := literal(engine, _PORT)) is not None and re.fullmatch(r"[0-9]{1,5}", value):
            yield from _in_range(engine.environment[_PORT], int(value), 1)
        for name in (_BASE, *_MORI_BASES):
            base = engine.node.at("experimental_configs", name) if engine.by_ray else None
            if base is not None and base.integer is not None:
                # NIXL binds one port a replica, MoRIIO one a rank.
                yield from _in_range(base, base.integer, replicas * ranks if name != _BASE else _last(replicas, ranks))
        own = engine.node.at("callback_config", "callback_kwargs", "side_channel_port_base") if engine.by_ray else None
        if own is not None and own.integer is not None:
            yield from _in_range(own, own.integer, replicas * ranks)
        for one in connectors(engine):
            for name in ("handshake_port", "notify_port"):
                port = one.extra.at(name) if one.extra is not None and one.called == "MoRIIOConnector" else None
                if port is not None and port.integer is not None:
                    yield from _in_range(port, port.integer, ranks)


def _last(replicas: int, ranks: int) -> int:
    return (replicas - 1) * ranks + 1


def _in_range(at: Located, first: int, count: int) -> Iterator[Found]:
    if _overlap(range(first, first + count), _EPHEMERAL):
        yield at, f"ports {first} to {first + count - 1}" if count > 1 else f"port {first}"


@guard(
    "side-channel-port-kv-events",
    "error",
    what="KV events are published at the port of NIXL's side channel",
    silently=_HANGS,
    fix="publish KV events at another port, such as vLLM's own 5557",
    source="vllm#25059; vllm 0.18 envs.py:1278 (5600), config/kv_events.py:25 (5557)",
)
def side_channel_port_kv_events(view: View) -> Iterator[Found]:
    for engine in view.moving():
        events = engine.argument("kv_events_config")
        endpoint = events.at("endpoint") if events is not None else None
        match = re.fullmatch(r"tcp://(\*|0\.0\.0\.0|\[::\]):([0-9]{1,5})", endpoint.text or "") if endpoint else None
        if endpoint is None or match is None or engine.by_ray or not by_nixl(engine):
            continue
        # Publishing has to be on: `enable_kv_cache_events`, off by default.
        if _port(engine) == int(match[2]) and events is not None and events.at("enable_kv_cache_events"):
            yield endpoint, f"port {match[2]}"
