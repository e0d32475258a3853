"""The life of a Serve application on a cluster that others use too. The dashboard is a stand-in, the engine is real."""

from tests.engine.stand_in_dashboard import Dashboard
from tests.shell import Shell

OTHERS = {"name": "somebody-elses", "import_path": "their:app", "route_prefix": "/theirs"}


def test_up_no_change_update_destroy_beside_another_tenant(remote: Shell, dashboard: Dashboard) -> None:
    dashboard.put({"applications": [OTHERS]})
    up = remote.run("pulumi up --yes")
    assert up.ok, up.text
    assert dashboard.configs["somebody-elses"] == OTHERS
    assert remote.run("pulumi preview --expect-no-changes").ok
    assert remote.run("pulumi refresh --yes --expect-no-changes").ok

    remote.write_stack("remote", topology="1p2d")
    up = remote.run("pulumi up --yes")
    assert up.ok, up.text
    assert "1 updated" in up.text
    assert "replaced" not in up.text
    replicas = {entry["name"]: entry["num_replicas"] for entry in dashboard.configs["llm"]["deployments"]}
    assert replicas["Decode:rehearsal-qwen3-moe"] == 2
    assert dashboard.configs["somebody-elses"] == OTHERS

    assert remote.run("pulumi destroy --yes").ok
    assert dashboard.configs == {"somebody-elses": OTHERS}


def test_refresh_sees_what_was_changed_behind_its_back(remote: Shell, dashboard: Dashboard) -> None:
    assert remote.run("pulumi up --yes").ok
    dashboard.configs["llm"]["deployments"][0]["num_replicas"] = 7
    assert not remote.run("pulumi refresh --preview-only --expect-no-changes").ok
    assert remote.run("pulumi up --yes --refresh").ok
    assert dashboard.configs["llm"]["deployments"][0]["num_replicas"] == 1

    dashboard.configs.clear()
    refresh = remote.run("pulumi refresh --yes")
    assert refresh.ok
    assert "1 deleted" in refresh.text
    assert remote.run("pulumi up --yes").ok
    assert "llm" in dashboard.configs


def test_an_application_that_fails_shows_the_replicas_own_error_and_is_withdrawn(
    remote: Shell, dashboard: Dashboard
) -> None:
    dashboard.outcome = "DEPLOY_FAILED"
    dashboard.message = (
        "The deployment failed to start 3 times in a row. Error:\nray::ServeReplica\n  File x, line 1, in y\n"
        "ValueError: Unknown engine argument: max_num_seq"
    )
    up = remote.run("pulumi up --yes")
    assert not up.ok
    assert "Traceback" not in up.text
    assert any("Decode" in line or "Prefill" in line for line in up.text.splitlines() if "Unknown engine" in line)
    assert dashboard.configs == {}

    dashboard.outcome = "RUNNING"
    assert remote.run("pulumi up --yes").ok


def test_ctrl_c_takes_the_application_back_and_a_rerun_works(remote: Shell, dashboard: Dashboard) -> None:
    dashboard.outcome = "DEPLOYING"
    up = remote.interrupt("exec pulumi up --yes", after="replicas Prefill")
    assert up.code != 0
    assert "interrupted while waiting for" in up.text
    assert dashboard.configs == {}

    dashboard.outcome = "RUNNING"
    up = remote.run("pulumi up --yes")
    assert up.ok, up.text
    assert "llm" in dashboard.configs
