"""Keys of kv_transfer_config, and of what a connector reads below it."""

from __future__ import annotations

from collections.abc import Iterator

from serving.guards.guard import Found, guard
from serving.guards.near_names import meant
from serving.guards.program_schemas import schemas
from serving.guards.transfer import Connector, connectors, known, literal, read_release
from serving.guards.view import View

# The same in vLLM 0.18, 0.25 and 0.29: config/kv_transfer.py.
_KEYS = frozenset(schemas()["engine"]["kv_transfer_config"]["$defs"]["KVTransferConfig"]["properties"])

# Keys of kv_connector_extra_config that are read.
# 0.18: nixl_connector.py:340, 970, 1024, 1181; moriio_common.py:208-223.
_NIXL_0_18 = frozenset({"backends", "num_threads", "enforce_handshake_compat", "enable_cross_layers_blocks"})
_MORIIO_0_18 = frozenset({"proxy_ip", "proxy_ping_port", "http_port", "handshake_port", "notify_port"})
# 0.25 and 0.29: nixl/base_scheduler.py, base_worker.py, push_scheduler.py; moriio_common.py:182-345 (0.29).
_NIXL_0_25 = frozenset(
    {"backends", "num_threads", "enforce_handshake_compat", "kv_lease_duration", "engine_ttl"}
    | {"bidirectional_kv_xfer", "kv_recompute_threshold", "decoder_kv_blocks_ttl", "push_registration_timeout"}
)
_MORIIO_0_25 = _MORIIO_0_18 | {
    *("read_mode", "host_ip", "backend", "transfer_timeout", "defer_timeout"),
    *("qp_per_transfer", "post_batch_size", "num_workers"),
}


@guard(
    "kv-transfer-unknown-key",
    "error",
    what="A key in kv_transfer_config that vLLM does not have",
    silently="Ray accepts it; every replica fails when vLLM builds its configuration, and is started again and again",
    fix="remove it, or move what belongs to the connector to kv_connector_extra_config",
    source="vllm 0.18 config/kv_transfer.py, config/utils.py:56-57 (extra: forbid); 0.25, 0.29 the same",
)
def kv_transfer_unknown_key(view: View) -> Iterator[Found]:
    of_connectors = _NIXL_0_18 | _NIXL_0_25 | _MORIIO_0_25
    release = read_release(view)
    for engine in view.moving():
        for one in connectors(engine):
            for key, value in one.values.items():
                if key in _KEYS:
                    continue
                near = meant(key, _KEYS, 0.6)
                if key in of_connectors:
                    yield value, f"{key} belongs into kv_connector_extra_config"
                elif release or near:
                    yield value, f"{key}{near}"


@guard(
    "kv-extra-unknown-key",
    "warning",
    what="A key in kv_connector_extra_config that the connector never reads",
    silently="nobody checks this object: the default stays in force",
    fix="write a key that this connector of this vLLM reads",
    source="vllm 0.18 nixl_connector.py:340-1181; 0.29 nixl/base_worker.py, base_scheduler.py; moriio_common.py",
)
def kv_extra_unknown_key(view: View) -> Iterator[Found]:
    release = read_release(view)
    for engine in view.moving():
        for one in connectors(engine):
            keys = _read_keys(one, release)
            for key, value in one.extra.items() if keys and one.extra else ():
                # Its own guard, kv-lease-not-read, says why.
                if key in keys or (release == "0.18" and key == "kv_lease_duration"):
                    continue
                near = meant(key, keys, 0.6)
                if release or near:
                    yield value, f"{key}{near}"


def _read_keys(one: Connector, release: str | None) -> frozenset[str]:
    if one.nixl:
        return _NIXL_0_18 if release == "0.18" else _NIXL_0_25 if release else _NIXL_0_18 | _NIXL_0_25
    if one.called == "MoRIIOConnector":
        return _MORIIO_0_18 if release == "0.18" else frozenset(_MORIIO_0_25)
    return frozenset()


@guard(
    "moriio-variable-ignored",
    "error",
    what="A MoRIIO setting as a variable, which this vLLM no longer reads",
    silently="vLLM logs once that it is ignored; transfers run in the default mode",
    fix="write it as a key of kv_connector_extra_config: read_mode, qp_per_transfer, post_batch_size, num_workers",
    source="vllm 0.25, 0.29 moriio/moriio_common.py _DEPRECATED_ENV_VARS; vllm 0.18 envs.py:1382-1394 reads them",
    holds={"vllm": ">=0.25"},
)
def moriio_variable_ignored(view: View) -> Iterator[Found]:
    ignored = [f"VLLM_MORIIO_{n}" for n in ("CONNECTOR_READ_MODE", "QP_PER_TRANSFER", "POST_BATCH_SIZE", "NUM_WORKERS")]
    for engine in view.moving():
        if known(view, "vllm") and any(one.called == "MoRIIOConnector" for one in connectors(engine)):
            for name in ignored:
                if name in engine.environment:
                    yield engine.environment[name], f"{name}={literal(engine, name) or ''}"
