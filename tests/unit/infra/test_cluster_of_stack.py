"""A stack on the nodes of another one, which may not be itself."""

from pathlib import Path

import pulumi
import pytest
from registrations import program_registers, stack

from infra.kubernetes_program import deploy_on_kubernetes
from serving.errors import ConfigError


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_stack_that_names_itself(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(pulumi, "get_stack", lambda: "pd-test")
    monkeypatch.setattr(pulumi, "get_root_directory", lambda: str(tmp_path))
    images = {"build": {"registry": "registry.example/team"}}
    itself = stack(cluster={"provider": "stack", "stack": "pd-test"}, namespace="pd-space", images=images)
    refusals: list[ConfigError] = []

    def program() -> None:
        with pytest.raises(ConfigError, match="pd-test is this stack itself; name the one that owns") as refusal:
            deploy_on_kubernetes(itself)
        refusals.append(refusal.value)

    assert program_registers(program) == [], "images neither"
    assert [refusal.key for refusal in refusals] == ["pd-mi325x:cluster.stack"]
