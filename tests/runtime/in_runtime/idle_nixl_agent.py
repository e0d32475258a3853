"""Prints what share of a core an idle NIXL agent takes: `python idle_nixl_agent.py SECONDS`.

The agent is made as vLLM makes it, after the plugin that vLLM would load has run.
"""

import sys
import time

from nixl._api import nixl_agent, nixl_agent_config

from serving.replica import nixl_progress


def main(seconds: float) -> None:
    """The share of a core on the last line: processor time of all threads of this process over time on the clock."""
    nixl_progress.register()
    nixl_progress.register()  # vLLM may load a plugin several times in one process
    agent = nixl_agent("idle", nixl_agent_config(num_threads=4, capture_telemetry=True))
    time.sleep(0.5)  # its own start
    clock, processor = time.monotonic(), time.process_time()
    time.sleep(seconds)
    share = (time.process_time() - processor) / (time.monotonic() - clock)
    print(share, agent.name)


if __name__ == "__main__":
    main(float(sys.argv[1]))
