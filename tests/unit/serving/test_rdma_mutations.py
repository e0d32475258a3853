"""A run that passes, damaged as logs are: cut, shuffled, coloured, doubled, with a line too many or too few."""

import random

import pytest
from rdma_gate_logs import NICS, gate_run, with_log

from serving.rdma_gate.gate_run import GateRun
from serving.rdma_gate.verdict import judge

SIDES = ["client", "server"]
RUNS = pytest.mark.parametrize(
    "run",
    [gate_run(), gate_run(layout="old"), gate_run(NICS), gate_run(NICS[:4])],
    ids=["one NIC", "one NIC, old layout", "eight NICs", "four NICs"],
)


def log_of(run: GateRun, side: str) -> str:
    return run.client.log if side == "client" else run.server.log


def is_final(line: str) -> bool:
    return line.startswith("Final:")


@RUNS
@pytest.mark.parametrize("side", SIDES)
def test_a_log_cut_anywhere_never_passes(run: GateRun, side: str) -> None:
    log = log_of(run, side)
    assert judge(run).outcome == "pass"
    for cut in [*(len(log) * tenth // 10 for tenth in range(10)), *range(0, len(log) - len(" 0\n"), 97)]:
        assert judge(with_log(run, side, log[:cut])).outcome == "fail", log[:cut][-80:]


@RUNS
@pytest.mark.parametrize("side", SIDES)
def test_a_log_without_its_beginning_never_passes(run: GateRun, side: str) -> None:
    """Kubernetes rotates logs: the first lines can be gone. What is left then has no table, or no settings."""
    log = log_of(run, side)
    start = log.index("into rocm/GPU0 from rocm")
    for cut in range(start, len(log), 97):
        assert judge(with_log(run, side, log[cut:])).outcome == "fail"


@RUNS
def test_the_order_of_other_lines_does_not_matter(run: GateRun) -> None:
    """Lines that belong to no table, moved about: into tables too, as stdout and stderr share one log."""
    shuffle = random.Random(5)
    for side in SIDES:
        *lines, end = log_of(run, side).splitlines()
        box = [line for line in lines if ("|" in line and "]   " not in line) or line.startswith("+")]
        table = [line for line in lines if "]   |" in line or "]   +" in line]
        rest = [line for line in lines if line not in box and line not in table]
        rest += [f"[1795986421.0{n:05}] [other:{n} :0]  ucp_worker.c:{n} UCX  INFO  noise {n}" for n in range(20)]
        for _ in range(20):
            mixed = list(table)
            for line in rest:
                mixed.insert(shuffle.randrange(len(mixed) + 1), line)
            verdict = judge(with_log(run, side, "\n".join([*box, *mixed, end])))
            assert verdict.outcome == "pass", verdict.reason


@RUNS
@pytest.mark.parametrize("side", SIDES)
def test_colours_and_line_ends_do_not_matter(run: GateRun, side: str) -> None:
    log = log_of(run, side)
    coloured = log.replace("zero-copy", "\x1b[1;32mzero-copy\x1b[0m").replace("UCX", "\x1b[33mUCX\x1b[0m")
    assert judge(with_log(run, side, coloured.replace("\n", "\r\n"))).outcome == "pass"


@RUNS
@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("level", ["ERROR", "FATAL"])
def test_an_error_anywhere_fails_and_is_the_reason(run: GateRun, side: str, level: str) -> None:
    lines = log_of(run, side).splitlines()
    for place in range(len(lines)):
        line = f"[1795986421.000000] [node:1395 :0]   x.c:1 UCX  {level} something happened"
        verdict = judge(with_log(run, side, "\n".join([*lines[:place], line, *lines[place:]])))
        assert verdict.outcome == "fail"
        assert verdict.reason.startswith(f"{side}: something happened")


@RUNS
def test_final_figures_that_are_missing_or_there_twice_fail(run: GateRun) -> None:
    lines = run.client.log.splitlines()
    none = [line for line in lines if not is_final(line)]
    twice = [line for line in lines for _ in range(2 if is_final(line) else 1)]
    assert judge(with_log(run, "client", "\n".join(none))).reason == "client: no final figures"
    assert judge(with_log(run, "client", "\n".join(twice))).reason == "client: 2 final figures"


@RUNS
@pytest.mark.parametrize("side", SIDES)
def test_every_table_counts_not_only_a_good_one(run: GateRun, side: str) -> None:
    """UCX prints tables for each endpoint configuration; one over tcp is enough to fail, in front or behind."""
    log = log_of(run, side)
    lines = log.splitlines()
    tables = [line for line in lines if "]   |" in line or "]   +" in line]
    bad = [
        line.replace("cfg#2", "cfg#3").replace("rc_mlx5/mlx5_0:1/path0", "tcp/fabric0           ") for line in tables
    ]
    for mixed in ([*bad, *lines], [*lines[:-1], *bad, lines[-1]]):
        verdict = judge(with_log(run, side, "\n".join(mixed)))
        assert verdict.outcome == "fail"
        assert "tcp/fabric0" in verdict.reason
    again = [line.replace("cfg#2", "cfg#3") for line in tables]
    assert judge(with_log(run, side, "\n".join([*again, *lines]))).outcome == "pass"


@RUNS
@pytest.mark.parametrize("side", SIDES)
def test_any_single_lost_line_of_the_table_of_reads_fails_or_leaves_the_proof_whole(run: GateRun, side: str) -> None:
    lines = log_of(run, side).splitlines()
    first = next(index for index, line in enumerate(lines) if "remote memory read" in line)
    proof = [index for index in range(first, len(lines)) if "zero-copy" in lines[index] or "exit code" in lines[index]]
    for lost in [first, *proof]:
        assert judge(with_log(run, side, "\n".join(lines[:lost] + lines[lost + 1 :]))).outcome == "fail"


@RUNS
def test_swapped_characters_in_lanes_and_words_fail(run: GateRun) -> None:
    """No single changed letter of what proves the path leaves a pass."""
    for word in ("rc_mlx5", "zero-copy", "inter-node", "remote memory read", "mlx5_0:1"):
        for place in range(len(word)):
            wrong = word[:place] + "#" + word[place + 1 :]
            changed = run.client.log.replace(word, wrong)
            assert judge(with_log(run, "client", changed)).outcome == "fail", wrong


def test_noise_is_no_run() -> None:
    noise = random.Random(7)
    letters = "| +-rcmlx5_/:10.%\nFinal: zero-copy inter-node cfg#2 remote memory read"
    for _ in range(200):
        log = "".join(noise.choice(letters) for _ in range(noise.randrange(600)))
        assert judge(with_log(gate_run(), "both", log)).outcome == "fail"
