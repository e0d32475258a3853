"""`make stacks`, so that `pulumi stack select pd-2p1d` works as people will type it."""

from serving.stack_files import stack_names
from tests.shell import Shell, assert_one_clear_line


def test_every_shipped_stack_can_be_selected_afterwards(shell: Shell) -> None:
    assert not shell.run("pulumi stack select pd-2p1d").ok
    registered = shell.run("python -m tools.stacks")
    assert registered.ok, registered.text
    for name in stack_names():
        assert shell.run(f"pulumi stack select {name}").ok
    assert shell.run("python -m tools.stacks").ok, "a second time changes nothing"


def test_a_folder_of_links_is_not_taken_for_the_checkout(shell: Shell) -> None:
    """Pulumi would write into the checkout's stack files."""
    refused = shell.run("mkdir links && cd links && ../.venv/bin/python -m tools.stacks")
    assert_one_clear_line(refused, "not the checkout", "pulumi stack select --create NAME")
