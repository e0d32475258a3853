"""One replica of a deployment: an engine, its cache, its counters, its way out to the clients."""

from __future__ import annotations

import random
import string
from dataclasses import dataclass, field
from typing import Literal

from tools.simulated_server.counted import Counted
from tools.simulated_server.delivery import Delivery, Stream
from tools.simulated_server.model import Engine, Step
from tools.simulated_server.prefix_cache import PrefixCache

Role = Literal["prefill", "decode", "aggregated"]


@dataclass
class Replica:
    """name: its id, new with every start. node: an address that stands for its node.

    step: the one under way. pulling: requests whose KV is on its way here. streams: who gets the tokens of the requests
    that it answers, by request. gone: it was restarted as another one.
    """

    role: Role
    name: str
    node: str
    engine: Engine
    delivery: Delivery
    cache: PrefixCache | None = None
    counted: Counted = field(default_factory=Counted)
    step: Step | None = None
    pulling: int = 0
    streams: dict[int, Stream] = field(default_factory=dict[int, Stream])
    gone: bool = False

    @property
    def load(self) -> int:
        """Requests here or on their way here."""
        return self.engine.load + self.pulling


def new_name(draw: random.Random) -> str:
    """An id like those Ray gives: eight letters and digits."""
    return "".join(draw.choices(string.ascii_lowercase + string.digits, k=8))
