"""Every shipped stack through the real engine. A new stack file needs no new test code."""

import pytest

from serving.stack_files import load_stack, stack_names
from tests.shell import Shell, assert_one_clear_line


@pytest.mark.parametrize("name", [n for n in stack_names() if load_stack(n).target == "ray"])
def test_a_ray_stack_previews(shell: Shell, name: str, port_base: int) -> None:
    shell.write_stack(name, cluster={"provider": "local", "portBase": port_base})
    assert shell.run(f"pulumi stack select --create {name}").ok
    preview = shell.run("pulumi preview")
    assert preview.ok, preview.text
    for resource in ("LocalRayCluster", "ServeApplication", "3 to create"):
        assert resource in preview.text
    assert f"127.0.0.1:{port_base}" in preview.text  # the service's address is known before anything runs


@pytest.mark.parametrize("name", [n for n in stack_names() if load_stack(n).target == "kubernetes"][:1])
def test_a_kubernetes_stack_says_that_it_needs_images(shell: Shell, name: str) -> None:
    """Of the others tests/cluster holds every manifest against the API server's schemas, and deploys some.

    A number of the command line is a quantity: it is not what the line is about.
    """
    assert shell.run(f"pulumi stack select --create {name}").ok
    assert shell.run("pulumi config set --path cluster.nodes.headCpu 2").ok
    assert_one_clear_line(shell.run("pulumi preview"), "pd-mi325x:images", "images.engine", "images.benchmark")
