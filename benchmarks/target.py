"""What is measured: the `benchmark` output of a Pulumi stack, as JSON."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from benchmarks import strict_json
from benchmarks.errors import BenchmarkError, first_problem

# http only: no certificate holds for the addresses behind the name.
_NAME_OF_ALL = r"^http://[^/:@]+(:\d{1,5})?/"


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Deployment(_Strict):
    """How the service is laid out. `prefill`, `decode` and `aggregated` count replicas, `gpus` all GPUs together.

    `engine` maps a role (`prefill`, `decode`, `aggregated`) to that role's engine arguments.
    """

    kind: Literal["pd", "aggregated"]
    topology: str
    platform: Literal["cpu", "rocm", "cuda"]
    prefill: int = Field(ge=0)
    decode: int = Field(ge=0)
    aggregated: int = Field(ge=0)
    gpus: int = Field(ge=0)
    dummy_weights: bool
    engine: dict[str, dict[str, Any]]

    @model_validator(mode="after")
    def _sizes_are_sizes(self) -> Deployment:
        for role, arguments in self.engine.items():
            for name in ("block_size", "tensor_parallel_size"):
                value = arguments.get(name)
                if value is not None and (type(value) is not int or not 0 < value <= 1_000_000):
                    raise ValueError(f"engine.{role}.{name}: must be a whole number from 1 to 1,000,000")
        return self

    @property
    def replicas(self) -> int:
        """Engine replicas of all roles together."""
        return self.prefill + self.decode + self.aggregated

    @property
    def transfers_per_request(self) -> int:
        """NIXL transfers per request: each tensor-parallel rank of decode pulls its own part of the KV cache."""
        return int(self.engine.get("decode", {}).get("tensor_parallel_size") or 1)


class KvShape(_Strict):
    """The KV cache: `block_size` in tokens; `bytes_per_token` is what all ranks of one decode replica pull for one."""

    block_size: int = Field(gt=0)
    bytes_per_token: int = Field(gt=0)


class Fabric(_Strict):
    """What is known of the RDMA fabric between the nodes before any load.

    `gate` is what the RDMA gate said when the stack was deployed: `passed`; `warned`: it found fault and was told to go
    on; `off`: it did not run; `none`: there is no fabric to look at. `reason` says why, in a few words.
    """

    gate: Literal["passed", "warned", "off", "none"]
    reason: str = ""

    @property
    def sentence(self) -> str:
        """What this means for a measurement."""
        because = f" ({self.reason})" if self.reason else ""
        if self.gate == "passed":
            return f"the RDMA gate passed before serving{because}"
        said = {"warned": "the gate found fault", "off": "the gate was off", "none": "no gate ran"}[self.gate]
        return f"RDMA not proven before serving: {said}{because}"


class Target(_Strict):
    """A deployed service and everything about it that a result must carry.

    `url` is the base URL without `/v1`; `tokenizer` is a Hugging Face id or an absolute directory.
    The Prometheus endpoints of the nodes are told in one of two ways: `metrics_urls` names each, `metrics_service` is
    the URL of all, whose host name resolves to one address per node (a headless Kubernetes service). So are those of
    Prometheus' node-exporter, which has the NICs' counters: `node_exporter_urls`, `node_exporter_service`, or neither.
    """

    stack: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$", max_length=200)
    url: str = Field(pattern=r"^https?://")
    model: str = Field(min_length=1)
    tokenizer: str = Field(min_length=1)
    scenario: str
    metrics_urls: list[str] = []
    metrics_service: str | None = Field(default=None, pattern=_NAME_OF_ALL)
    node_exporter_urls: list[str] = []
    node_exporter_service: str | None = Field(default=None, pattern=_NAME_OF_ALL)
    deployment: Deployment
    kv: KvShape | None
    # None: deployed by a version of this project that had no gate.
    fabric: Fabric | None = None
    versions: dict[str, str]
    commit: str

    @field_validator("url", "metrics_urls", "metrics_service", "node_exporter_urls", "node_exporter_service")
    @classmethod
    def _leads_somewhere(cls, value: str | list[str] | None) -> str | list[str] | None:
        for url in [value] if isinstance(value, str) else value or []:
            try:
                parts = urlsplit(url)
                if parts.scheme not in ("http", "https") or not parts.hostname or parts.port == 0:
                    raise ValueError
            except ValueError:  # also a port above 65535
                raise ValueError(f"{url[:80]!r} is no http URL with a host and a port up to 65535") from None
        return value

    @model_validator(mode="after")
    def _pd_needs_its_proof(self) -> Target:
        if self.deployment.kind == "pd" and (self.kv is None or not self.has_metrics):
            raise ValueError(
                "a pd deployment needs `kv` and `metrics_urls` or `metrics_service`: "
                "without them nothing shows that KV moved"
            )
        return self

    @model_validator(mode="after")
    def _each_endpoint_once(self) -> Target:
        for kind, urls, service in (
            ("metrics", self.metrics_urls, self.metrics_service),
            ("node_exporter", self.node_exporter_urls, self.node_exporter_service),
        ):
            if urls and service:
                raise ValueError(f"`{kind}_urls` and `{kind}_service` exclude each other: give one of them")
            if len(set(urls)) != len(urls):
                raise ValueError(f"{kind}_urls: an endpoint named twice would be counted twice")
        return self

    @property
    def block_size(self) -> int:
        """Tokens of a block of the prefix cache, where prompts are computed; 16, vLLM's default, if it is not told."""
        engine = self.deployment.engine.get("prefill") or self.deployment.engine.get("aggregated") or {}
        return int(engine.get("block_size") or 16)

    @property
    def has_metrics(self) -> bool:
        """Whether the service's counters can be read at all."""
        return bool(self.metrics_urls or self.metrics_service)

    @property
    def has_node_exporters(self) -> bool:
        """Whether the NICs' counters can be read."""
        return bool(self.node_exporter_urls or self.node_exporter_service)


def read_target(source: str) -> Target:
    """Read a target from a file, or from standard input for `-`.

    Raises BenchmarkError when it cannot be read or does not fit the model.
    """
    place = "standard input" if source == "-" else source
    try:
        text = sys.stdin.read() if source == "-" else Path(source).read_text(encoding="utf-8")
    except (OSError, ValueError) as error:  # ValueError: no UTF-8, or a NUL in the name
        reason = getattr(error, "strerror", None) or str(error)
        raise BenchmarkError(
            f"cannot read target {place}: {reason}; write it with `pulumi stack output benchmark --json`"
        ) from None
    return parse_target(text, place)


def parse_target(text: str, place: str) -> Target:
    """Read a target from JSON text; `place` names it in errors. Raises BenchmarkError."""
    data: Any = None
    try:
        data = strict_json.loads(text)
        return Target.model_validate(data)
    except strict_json.NotJsonError as error:
        raise BenchmarkError(
            f"target {place} is not JSON ({error}); write it with `pulumi stack output benchmark --json`"
        ) from None
    except ValidationError as error:
        problem = first_problem(error, Target, data)
        raise BenchmarkError(f"target {place}: {problem}; see benchmarks/target.py for the format") from None
