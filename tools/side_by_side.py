"""`python -m tools.side_by_side TARGET…`: make targets at the same time, each line of output with its target's name.

For targets that wait more than they compute. GNU make's own `-j` mixes their lines, or holds them back to the end.
"""

import signal
import subprocess
import sys
import threading


def _show(target: str, process: "subprocess.Popen[str]", width: int) -> None:
    for line in process.stdout or ():
        sys.stdout.write(f"{target:<{width}}  {line}")
        sys.stdout.flush()


def run(targets: list[str]) -> int:
    """Run them all to their ends; 0, or the exit code of the first in the list that failed.

    They share our process group, so the terminal's Ctrl-C is theirs too: they clean up, and are waited for.
    """
    interrupted = threading.Event()
    # From the start on, and as a handler: a KeyboardInterrupt can strike anywhere, also where nobody waits for them.
    signal.signal(signal.SIGINT, lambda *_: interrupted.set())
    processes = {
        target: subprocess.Popen(
            ["make", "--no-print-directory", target],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        )
        for target in targets
    }
    width = max(map(len, targets))
    threads = [threading.Thread(target=_show, args=(*item, width)) for item in processes.items()]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    codes = [process.wait() for process in processes.values()]
    return next(filter(None, codes), 130 if interrupted.is_set() else 0)


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
