"""A stack on the nodes of another stack that has none, or does not exist."""

from tests.shell import Shell, assert_one_clear_line

IMAGES = {name: f"registry.example/{name}@sha256:{'1' * 64}" for name in ("engine", "benchmark")}


def test_a_stack_that_was_never_brought_up(shell: Shell) -> None:
    shell.write_stack("pd-2p1d", cluster={"provider": "stack", "stack": "mi325x-4node"}, images=IMAGES)
    assert shell.run("pulumi stack select --create pd-2p1d").ok
    assert_one_clear_line(shell.run("pulumi preview"), "mi325x-4node")
    assert shell.run("pulumi stack init mi325x-4node --no-select").ok
    for command in ("preview", "up --yes"):
        answer = shell.run(f"pulumi {command}")
        assert_one_clear_line(answer, "cluster.stack: mi325x-4node has no nodes yet; run `pulumi up` in it")
        assert "1 errored" in answer.text, answer.text
