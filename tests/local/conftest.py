"""One checkout as a new user has it, and in it two stacks: aggregated, and prefill/decode.

The first is gone before the second comes, unless a test of the second runs alone: each takes 7 GiB.
"""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.conftest import free_port_base, ports_are_free
from tests.local.deployment import Deployment, processes_of
from tests.shell import ROOT, Shell, copy_of_checkout

PD = "local-pd-1p1d"
AGGREGATED = "local-agg-2"
# A range of ports each: a stack that is gone for now takes its own again when it comes back.
PORTS = {AGGREGATED: (21000, 23400), PD: (23400, 26000)}
# As a user adds one: the rehearsal's load for half as long, which is enough to count KV.
SHORT = "rehearsal-short"


@pytest.fixture(scope="session")
def user(tmp_path_factory: pytest.TempPathFactory) -> Shell:
    """A shell in a checkout whose environment `make tools` has made."""
    place = tmp_path_factory.mktemp("user")
    shell = Shell(copy_of_checkout(place / "checkout"), place / "home")
    made = shell.run("make tools", 900)
    assert made.ok, made.text
    scenarios = shell.checkout / "benchmarks" / "scenarios.yaml"
    rehearsal = yaml.safe_load(scenarios.read_text())["rehearsal"]
    short = {**rehearsal, "warmup_s": 3, "window_s": 10, "min_requests": 10}
    with scenarios.open("a") as file:
        yaml.safe_dump({SHORT: short}, file)
    return shell


def new_deployment(user: Shell, stack: str) -> Deployment:
    """The stack's file with ports of its own, and the stack made; nothing is deployed yet."""
    port_base = free_port_base(*PORTS[stack])
    user.write_stack(stack, cluster={"provider": "local", "portBase": port_base})
    answer = user.run(f"pulumi stack select --create {stack}")
    assert answer.ok, answer.text
    return Deployment(user, stack, port_base)


def destroy(deployment: Deployment) -> None:
    """`pulumi destroy`, and a look at what it left: that has to be nothing."""
    directories = [head["directory"] for head in deployment.heads()]
    deployment.pulumi("destroy --yes")
    for directory in directories:
        assert processes_of(directory) == []
        assert not Path(directory).exists()
    # The kernel gives back a killed engine's memory before its sockets: gigabytes, on a busy machine seconds.
    deadline = time.monotonic() + 20
    while not ports_are_free(deployment.port_base):
        assert time.monotonic() < deadline, "a port of the destroyed stack is still in use"
        time.sleep(0.5)


@pytest.fixture(scope="session")
def pd(user: Shell) -> Iterator[Deployment]:
    """`pulumi up` of the prefill/decode stack, destroyed at the end."""
    deployment = new_deployment(user, PD)
    try:
        deployment.pulumi("up --yes", 900)
        yield deployment
    finally:
        destroy(deployment)


@pytest.fixture(scope="session")
def aggregated_stack(user: Shell) -> Iterator[Deployment]:
    """The shipped aggregated stack on ports of its own, not deployed."""
    deployment = new_deployment(user, AGGREGATED)
    yield deployment
    destroy(deployment)


@pytest.fixture(scope="session")
def aggregated(aggregated_stack: Deployment) -> Deployment:
    """`pulumi up` of it, as it is shipped."""
    shipped = yaml.safe_load((ROOT / f"Pulumi.{AGGREGATED}.yaml").read_text())["config"]
    keys = ("topology", "engine")
    aggregated_stack.shell.write_stack(AGGREGATED, **{key: shipped[f"pd-mi325x:{key}"] for key in keys})
    aggregated_stack.pulumi("up --yes", 900)
    return aggregated_stack


@pytest.fixture(scope="session")
def aggregated_answers(aggregated: Deployment) -> list[list[int]]:
    """What it answers to the prompts of PROMPT_LENGTHS."""
    return aggregated.answers()
