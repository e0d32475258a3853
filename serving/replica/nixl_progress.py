"""vLLM plugin (entry point group `vllm.general_plugins`): lets NIXL's progress thread rest between two polls.

NIXL's Python API starts that thread with a delay of 0, and each engine then burns a core while idle: on a machine with
two cores a prefill and a decode replica left nothing for anything else (a 1.5 s `pulumi preview` took 20 s and more).
Engines on GPUs keep NIXL's default; the CPU platform sets the variable below.
"""

import os

DELAY_VARIABLE = "PD_NIXL_PROGRESS_DELAY_US"


def register() -> None:
    """Called by vLLM in every process of an engine. Does nothing unless the variable is set."""
    delay = os.environ.get(DELAY_VARIABLE)
    if delay is None:
        return
    from nixl import _api

    bindings = _api.nixlBind
    agent = bindings.nixlAgent
    if getattr(agent, "progress_delay", None):
        return

    def agent_with_delay(name: str, config: object) -> object:
        config.pthrDelay = int(delay)  # microseconds
        return agent(name, config)

    agent_with_delay.progress_delay = delay
    bindings.nixlAgent = agent_with_delay
