"""The Kubernetes provider of Pulumi: published, or built here with a stand-in for Go, where Pulumi looks for it."""

import subprocess
import sys
from pathlib import Path

import pytest
from toolchain_machine import Machine, one_error_line

from tools.toolchain.versions import versions

VERSION = versions()["pulumi_kubernetes"]["version"]
ITEM = "kubernetes-provider"
BINARY = "pulumi-resource-kubernetes"
# What the pinned Pulumi says where get.pulumi.com has no address.
NOT_REACHABLE = """cat >&2 <<END
warning: Error downloading plugin: Get "https://get.pulumi.com/x": dial tcp: lookup get.pulumi.com: no such host
Will retry in 1.28s [5/5]
error: [resource plugin kubernetes] downloading from : failed to download plugin: failed all 5 attempts
END
exit 1"""


class Owner(Machine):
    """A machine with an installed Pulumi, whose `plugin install` does what a test says."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.plugin = folder / "pulumi" / "plugins" / f"resource-kubernetes-v{VERSION}"
        self.pulumi(NOT_REACHABLE)

    def pulumi(self, install: str) -> None:
        self.program("pulumi", f'case "$1" in version) echo v99.0.0 ;; plugin) {install} ;; esac')

    def publish(self) -> None:
        """What Pulumi leaves after a download."""
        self.plugin.mkdir(parents=True)
        (self.plugin / BINARY).write_text("#!/bin/sh\necho published\n")
        (self.plugin / BINARY).chmod(0o755)


@pytest.fixture
def machine(tmp_path: Path) -> Owner:
    return Owner(tmp_path)


def output(program: Path) -> str:
    return subprocess.check_output([program], text=True).strip()


def test_published_provider_among_the_plugins_is_used(machine: Owner) -> None:
    machine.publish()
    result = machine.run("ensure", ITEM)
    assert result.returncode == 0, result.stderr
    assert result.stdout == f"{ITEM}: found the published one in ~/pulumi/plugins/{machine.plugin.name}\n"
    assert output(machine.path(ITEM)) == "published"
    assert "published" in next(line for line in machine.run("doctor").stdout.splitlines() if VERSION in line)


def test_provider_that_pulumi_has_not_finished_installing_is_not_taken(machine: Owner) -> None:
    machine.publish()
    machine.plugin.with_name(f"{machine.plugin.name}.partial").touch()
    assert "make toolchain" in one_error_line(machine.run("path", ITEM))
    machine.with_go()
    machine.run("ensure", ITEM)
    assert "published" not in output(machine.path(ITEM))


def test_published_provider_is_downloaded_where_that_is_possible(machine: Owner) -> None:
    machine.pulumi(
        f"echo \"$@\" >>{machine.bin}/asked; mkdir -p '{machine.plugin}'; "
        f"printf '#!/bin/sh\\necho downloaded\\n' >'{machine.plugin}/{BINARY}'; chmod +x '{machine.plugin}/{BINARY}'"
    )
    result = machine.run("ensure", ITEM)
    assert result.returncode == 0, result.stderr
    assert output(machine.path(ITEM)) == "downloaded"
    assert (machine.bin / "asked").read_text() == f"plugin install resource kubernetes v{VERSION} --exact\n"
    assert not (machine.cache / "bin").exists()


def test_provider_is_built_where_it_cannot_be_downloaded(machine: Owner) -> None:
    machine.with_go()
    result = machine.run("ensure", ITEM)
    assert result.returncode == 0, result.stderr
    assert "dial tcp: lookup get.pulumi.com: no such host); building it instead\n" in result.stdout
    assert f"-X main.version={VERSION} " in output(machine.path(ITEM))
    assert machine.path(ITEM) == machine.plugin / BINARY
    assert {file.name for file in machine.plugin.iterdir()} >= {"schema.json", "terraform-mapping.json"}
    assert sorted(place.name for place in machine.plugin.parent.iterdir()) == [machine.plugin.name]
    again = machine.run("ensure", ITEM).stdout
    assert again == f"{ITEM}: found ours in ~/pulumi/plugins/{machine.plugin.name}\n"


def test_download_that_hangs_is_given_up(machine: Owner) -> None:
    machine.with_go()
    machine.pulumi("sleep 600")
    code = "from tools.toolchain import kubernetes_provider as it; it.DOWNLOAD_LIMIT_S = 1; it.ensure()"
    answer = subprocess.run(
        [sys.executable, "-c", code],
        cwd=machine.root,
        env=machine.environment,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert answer.returncode == 0, answer.stderr
    assert "`pulumi plugin` did not end within 1.0 s); building it instead" in answer.stdout


def test_without_download_and_go_one_line_names_both_ways(machine: Owner) -> None:
    line = one_error_line(machine.run("ensure", ITEM))
    assert "no Go to build it with" in line
    assert f"pulumi plugin install resource kubernetes v{VERSION}" in line


def test_build_of_other_sources_is_out_of_date_and_replaced(machine: Owner) -> None:
    machine.with_go()
    machine.run("ensure", ITEM)
    with (machine.root / "tools" / "pulumi-kubernetes" / "main.go").open("a") as file:
        file.write("// changed\n")
    assert machine.run("path", ITEM).returncode == 1
    result = machine.run("ensure", ITEM)
    assert "built in" in result.stdout, result.stderr
    assert machine.path(ITEM).exists()


def test_another_pulumi_home_gets_the_provider_without_a_build(machine: Owner, tmp_path: Path) -> None:
    machine.with_go()
    machine.run("ensure", ITEM)
    (machine.bin / "go").unlink()
    result = machine.run("ensure", ITEM, PULUMI_HOME=str(tmp_path / "other"))
    assert result.returncode == 0, result.stderr
    place = tmp_path / "other" / "plugins" / machine.plugin.name / BINARY
    assert place.samefile(machine.plugin / BINARY)


def test_provider_on_path_is_named_because_pulumi_prefers_it(machine: Owner) -> None:
    machine.publish()
    machine.program(BINARY, "exit 1")
    assert f"Pulumi will take ~/bin/{BINARY}, whatever its version" in machine.run("ensure", ITEM).stdout
    doctor = machine.run("doctor").stdout
    assert "unknown version" in next(line for line in doctor.splitlines() if line.startswith("kubernetes provider"))
    assert machine.path(ITEM) == machine.plugin / BINARY
