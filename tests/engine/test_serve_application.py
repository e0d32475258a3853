"""The life of a Serve application on a cluster that others use too. The dashboard is a stand-in, the engine is real."""

import time
from pathlib import Path

from tests.engine.stand_in_dashboard import Dashboard
from tests.shell import Shell, assert_one_clear_line

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

    assert remote.run("pulumi destroy --yes --skip-preview").ok
    assert dashboard.configs == {"somebody-elses": OTHERS}


def test_refresh_sees_what_was_changed_behind_its_back(remote: Shell, dashboard: Dashboard) -> None:
    assert remote.run("pulumi up --yes --skip-preview").ok
    dashboard.configs["llm"]["deployments"][0]["num_replicas"] = 7
    assert not remote.run("pulumi refresh --preview-only --expect-no-changes").ok
    assert remote.run("pulumi up --yes --refresh").ok
    assert dashboard.configs["llm"]["deployments"][0]["num_replicas"] == 1

    dashboard.configs.clear()
    refresh = remote.run("pulumi refresh --yes")
    assert refresh.ok
    assert "1 deleted" in refresh.text
    assert remote.run("pulumi up --yes --skip-preview").ok
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
    assert remote.run("pulumi up --yes --skip-preview").ok


def test_an_update_that_fails_is_not_forgotten(remote: Shell, dashboard: Dashboard) -> None:
    """Going back to the old settings is a change: the cluster has the new ones."""
    assert remote.run("pulumi up --yes --skip-preview").ok
    good = dashboard.configs["llm"]
    dashboard.outcome, dashboard.message = "UNHEALTHY", "RuntimeError: no memory"
    remote.write_stack("remote", engine={"all": {"max_num_seqs": 128}})
    assert "no memory" in remote.run("pulumi up --yes").text
    assert dashboard.configs["llm"] != good

    dashboard.outcome = "RUNNING"
    remote.write_stack("remote", engine=None)
    up = remote.run("pulumi up --yes")
    assert up.ok, up.text
    assert dashboard.configs["llm"] == good


def test_ctrl_c_in_an_update_is_not_forgotten_either(remote: Shell, dashboard: Dashboard) -> None:
    assert remote.run("pulumi up --yes --skip-preview").ok
    good = dashboard.configs["llm"]
    dashboard.outcome = "DEPLOYING"
    remote.write_stack("remote", engine={"all": {"max_num_seqs": 128}})
    assert remote.interrupt("exec pulumi up --yes", after="replicas Prefill").code != 0
    dashboard.outcome = "RUNNING"
    remote.write_stack("remote", engine=None)
    assert remote.run("pulumi up --yes --skip-preview").ok
    assert dashboard.configs["llm"] == good


def test_a_dashboard_that_stumbles_does_not_fail_the_update(remote: Shell, dashboard: Dashboard) -> None:
    dashboard.outcome = "DEPLOYING"
    with remote.start("pulumi up --yes") as up:
        assert up.stdout is not None
        while "replicas Prefill" not in up.stdout.readline():
            pass
        dashboard.broken = True
        time.sleep(3)
        dashboard.broken, dashboard.outcome = False, "RUNNING"
        text = up.stdout.read()
    assert up.returncode == 0, text


def test_somebody_elses_application_of_the_same_name_is_left_alone(remote: Shell, dashboard: Dashboard) -> None:
    theirs = {"name": "llm", "import_path": "their:app", "route_prefix": "/"}
    dashboard.put({"applications": [theirs], "target_capacity": 40})
    assert_one_clear_line(remote.run("pulumi up --yes"), dashboard.url, "already serves an application 'llm'")
    assert dashboard.configs == {"llm": theirs}


def test_the_clusters_target_capacity_survives(remote: Shell, dashboard: Dashboard) -> None:
    dashboard.put({"applications": [], "target_capacity": 40})
    assert remote.run("pulumi up --yes --skip-preview").ok
    assert dashboard.target_capacity == 40


def test_a_moved_token_file_is_a_change(remote: Shell, dashboard: Dashboard, tmp_path: Path) -> None:
    assert remote.run("pulumi up --yes --skip-preview").ok
    moved = tmp_path / "moved"
    (tmp_path / "token").rename(moved)
    ray = {"address": dashboard.url, "tokenFile": str(moved), "serviceUrl": "http://127.0.0.1:1"}
    remote.write_stack("remote", ray=ray)
    assert remote.run("pulumi up --yes --skip-preview").ok
    assert remote.run("pulumi refresh --yes").ok
    assert remote.run("pulumi destroy --yes --skip-preview").ok


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
