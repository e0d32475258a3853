"""How many replicas of which role: `2p1d` is two prefill and one decode, `agg-3` is three aggregated."""

import re
from dataclasses import dataclass
from typing import Literal

from serving.errors import ConfigError

Role = Literal["prefill", "decode", "aggregated"]
_PD = re.compile(r"(0|[1-9][0-9]*)p(0|[1-9][0-9]*)d")
# Of one role. Side channel ports count up from 20100, 8 for each replica (serve_config.py): those of 1,000 end
# at 28100, below Linux's ephemeral range. A thousand nodes of 8 GPUs are also more than anybody has for one stack.
_MOST_REPLICAS = 1000
_AGGREGATED = re.compile(r"agg-([1-9][0-9]*)")


@dataclass(frozen=True)
class Topology:
    """Replica counts per role. Either prefill and decode are positive, or aggregated is."""

    prefill: int = 0
    decode: int = 0
    aggregated: int = 0

    @property
    def disaggregated(self) -> bool:
        return self.aggregated == 0

    @property
    def roles(self) -> dict[Role, int]:
        """Role -> replica count, only the roles that exist."""
        if self.disaggregated:
            return {"prefill": self.prefill, "decode": self.decode}
        return {"aggregated": self.aggregated}

    @property
    def replicas(self) -> int:
        return sum(self.roles.values())

    def __str__(self) -> str:
        return f"{self.prefill}p{self.decode}d" if self.disaggregated else f"agg-{self.aggregated}"


def parse_topology(text: str) -> Topology:
    """`2p1d` or `agg-3` -> Topology. Raises ConfigError for anything that could not answer a request."""
    if match := _PD.fullmatch(text):
        prefill, decode = _count("prefill", match[1]), _count("decode", match[2])
        for role, count in (("prefill", prefill), ("decode", decode)):
            if count == 0:
                raise ConfigError("topology", f"{text!r} has no {role} replica", "write for example 1p1d or agg-2")
        return Topology(prefill=prefill, decode=decode)
    if match := _AGGREGATED.fullmatch(text):
        return Topology(aggregated=_count("aggregated", match[1]))
    raise ConfigError("topology", f"cannot read {text!r}", "write for example 2p1d (prefill, decode) or agg-3")


def _count(role: Role, digits: str) -> int:
    if len(digits) > len(str(_MOST_REPLICAS)) or int(digits) > _MOST_REPLICAS:
        raise ConfigError("topology", f"has more than {_MOST_REPLICAS} {role} replicas", "write a smaller number")
    return int(digits)
