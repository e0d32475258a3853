"""What guards of KV transfer ask: which connector, who is paired with whom, what is known of versions and of nodes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from packaging.version import InvalidVersion, Version

from serving.guards.located import Located
from serving.guards.view import Engine, View, without_role

# vLLM 0.25 to 0.29, kv_connector/factory.py: three names, one implementation; 0.18 has the first alone.
NIXL = frozenset({"NixlConnector", "NixlPullConnector", "NixlPushConnector"})

# Boards of AMD's OAM kind carry eight GPUs (the accelerator names are Ray's: ray/util/accelerators/accelerators.py).
_EIGHT_GPUS = re.compile(r"AMD-Instinct-MI3\d\dX-OAM")
_RDMA_DEVICE = re.compile(r"rdma|roce|infiniband", re.IGNORECASE)
# The commit that vLLM's ROCm images and this repository take: branch v1.19.x with the change of 1.19.1
# (openucx #10922), and so before everything that came with a later release.
_UCX_COMMITS = {"da3fac2": Version("1.19.1")}


@dataclass(frozen=True)
class Connector:
    """A KV connector of an engine, or one of those that its MultiConnector holds. node: its kv_transfer_config."""

    engine: Engine
    values: Mapping[str, Located]
    name: Located | None

    @property
    def called(self) -> str:
        return (self.name.text if self.name else None) or ""

    @property
    def nixl(self) -> bool:
        return self.called in NIXL

    @property
    def extra(self) -> Located | None:
        return self.values.get("kv_connector_extra_config")


def connectors(engine: Engine) -> list[Connector]:
    """The connector of an engine; of a MultiConnector also those that it holds."""
    if engine.kv is None:
        return []
    found = [Connector(engine, engine.kv, engine.kv.get("kv_connector"))]
    held = engine.kv_extra("connectors")
    for child in held.entries() if held else ():
        found.append(Connector(engine, dict(child.items()), child.at("kv_connector")))
    return found


def by_nixl(engine: Engine) -> bool:
    """Whether an engine moves KV with NIXL."""
    return any(one.nixl for one in connectors(engine))


def by_ucx(engine: Engine) -> bool:
    """Whether NIXL moves KV with UCX, as it does unless `backends` names others alone (LIBFABRIC, Mooncake)."""
    named = [one.extra.at("backends") if one.extra is not None else None for one in connectors(engine) if one.nixl]
    return any(one is None or "UCX" in str(one.value).upper() for one in named)


def asks_for_rdma(engine: Engine) -> bool:
    """Whether an engine's pod asks for an RDMA device."""
    return engine.pod is not None and any(_RDMA_DEVICE.search(name) for name in engine.pod.resources())


def whole(engine: Engine) -> Located:
    """What to blame where a key of `kv_transfer_config` is missing."""
    return engine.arguments.get("kv_transfer_config") or engine.node


def pairs(view: View) -> Iterator[tuple[Engine, Engine]]:
    """Prefill and the decode it serves for. `vllm serve` commands, which nothing joins: those of one model, or the only
    two of a file if they are called the same but for the role."""
    every = list(view.pairs())
    plain = [pair for pair in every if not pair[0].by_ray]
    for prefill, decode in every:
        only = len(plain) == 1 and without_role(prefill) == without_role(decode)
        if prefill.by_ray or only or same(prefill.model, decode.model):
            yield prefill, decode


def same(one: Located | None, other: Located | None) -> bool:
    """Whether two values are given and equal."""
    return one is not None and other is not None and one.value == other.value


def compared(one: Engine, other: Engine) -> bool:
    """Whether NIXL compares what both engines are before it moves anything (vLLM 0.18 to 0.29, by default)."""
    return (
        by_nixl(one)
        and by_nixl(other)
        and not any(
            is_false(c.extra.at("enforce_handshake_compat")) for e in (one, other) for c in connectors(e) if c.extra
        )
    )


def kv_format(engine: Engine, name: str) -> str | None:
    """What an engine is told of how it keeps KV, in lower case; None where vLLM chooses."""
    found = engine.argument(name)
    text = str(found.value).lower() if found is not None and found.value is not None else "auto"
    return None if text == "auto" else {"half": "float16", "float": "float32"}.get(text, text)


def is_true(value: Located | None) -> bool:
    """Whether it is given, and means yes in YAML, JSON or Python."""
    return value is not None and str(value.value).strip().lower() in ("true", "1")


def is_false(value: Located | None) -> bool:
    """Whether it is given, and means no in YAML, JSON or Python."""
    return value is not None and str(value.value).strip().lower() in ("false", "0")


def known(view: View, component: str) -> Version | None:
    """A version that was said, by an image or by the user; none where a pin of this repository stands in for it."""
    if component in view.assumed:
        return None
    try:
        return Version(view.versions[component])
    except (KeyError, InvalidVersion):
        return None


def ucx_version(view: View) -> Version | None:
    """UCX's version, also of the commit that the ROCm images of vLLM 0.18 are built with."""
    said = "" if "ucx" in view.assumed else view.versions.get("ucx", "")
    commits = (version for commit, version in _UCX_COMMITS.items() if said.startswith(commit))
    return known(view, "ucx") or next(commits, None)


def literal(engine: Engine, name: str) -> str | None:
    """A variable's value where it is written down and no reference to something else."""
    value = engine.variable(name)
    return None if value is None or "$" in value or "{{" in value else value.strip()


def has_callback(engine: Engine) -> bool:
    """Whether code of the user's runs before the engine starts: it may set what the config does not."""
    return engine.node.at("callback_config", "callback_class") is not None


def most_replicas(engine: Engine) -> int:
    """How many replicas there may be; 1 where nothing is said."""
    scaled = engine.node.at("deployment_config", "autoscaling_config", "max_replicas") if engine.by_ray else None
    return max(engine.replicas or 1, (scaled.integer or 1) if scaled else 1)


def node_gpus(view: View, engine: Engine) -> int | None:
    """GPUs that the node of an engine under Ray offers: those of its worker pod, or of the kind of board."""
    if engine.pod is not None and engine.pod.kind == "worker":
        return engine.pod.gpus or None
    named = engine.node.at("accelerator_type")
    if view.node.gpus:
        return view.node.gpus
    return 8 if named is not None and named.text and _EIGHT_GPUS.fullmatch(named.text) else None


def may_meet(view: View, one: Engine, other: Engine) -> bool:
    """Whether a replica of each, or two of one, can land on one node under Ray. Not where it is not known."""
    if one is other and most_replicas(one) < 2:
        return False
    gpus = node_gpus(view, one)
    return gpus is not None and gpus == node_gpus(view, other) and one.gpus + other.gpus <= gpus


def read_release(view: View) -> str | None:
    """Of the releases that were read: the one that runs, where it is known and one of them."""
    version = known(view, "vllm")
    named = f"{version.major}.{version.minor}" if version is not None else ""
    return named if named in ("0.18", "0.25", "0.29") else None


def may_be_hidden(engine: Engine, name: str) -> bool:
    """Whether a variable may be set where nobody sees it: out of a ConfigMap or Secret, or by a shell."""
    container = engine.pod.container if engine.pod is not None else engine.node
    if container.at("envFrom") is not None:
        return True
    return any(name in str(at.value) for key in ("command", "args") if (at := container.at(key)) is not None)
