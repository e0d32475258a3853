"""What a user is told while an application starts and when it does not."""

import pytest

from infra.provider.serve_application import failure, progress, reason

# As Ray Serve 2.55 writes it (shortened), from a replica whose engine refused an argument.
REPLICA_FAILED = """The deployment failed to start 3 times in a row. This may be due to a problem with its constructor
or initial health check failing. See controller logs for details. Error:
\x1b[36mray::ServeReplica:llm:Prefill:m.initialize_and_get_metadata()\x1b[39m (pid=1, ip=127.0.0.2)
  File "replica.py", line 1, in initialize_and_get_metadata
    raise RuntimeError(traceback.format_exc()) from None
RuntimeError: Traceback (most recent call last):
  File "vllm_engine.py", line 1, in start
ValueError: Unknown engine argument: max_num_seq
"""


def deployment(running: int, wanted: int, status: str = "UPDATING", message: str = "") -> dict[str, object]:
    states = ["RUNNING"] * running + ["STARTING"] * (wanted - running)
    replicas = [{"state": state} for state in states]
    return {"status": status, "message": message, "target_num_replicas": wanted, "replicas": replicas}


def test_the_last_exception_is_the_reason() -> None:
    assert reason(REPLICA_FAILED) == "ValueError: Unknown engine argument: max_num_seq"


def test_an_exception_of_several_lines_is_told_whole_in_one() -> None:
    message = (
        REPLICA_FAILED + "pydantic.ValidationError: 1 validation error\n  Value error, max_num_batched_tokens (100)\n"
    )
    assert reason(message) == "pydantic.ValidationError: 1 validation error Value error, max_num_batched_tokens (100)"
    assert len(reason("ValueError: " + "x" * 10_000)) < 600


@pytest.mark.parametrize("message", ["Deployment was cancelled", "  Deployment was cancelled\nsecond line"])
def test_a_message_without_a_traceback_is_shown_by_its_first_line(message: str) -> None:
    assert reason(message) == "Deployment was cancelled"


def test_progress_counts_replicas_and_names_a_failed_start() -> None:
    details = {"deployments": {"Prefill:m": deployment(0, 2, message=REPLICA_FAILED), "Decode:m": deployment(1, 1)}}
    told = progress(details)
    assert "Prefill:m 0/2" in told
    assert "Decode:m 1/1" in told
    assert "Unknown engine argument" in told
    assert progress({"deployments": {}}) == "Serve to build the application"


def test_failure_names_the_deployment_and_prefers_its_error_to_the_applications() -> None:
    details = {
        "message": "Failed to update the deployments ['Prefill:m'].",
        "deployments": {
            "Decode:m": deployment(1, 1, "HEALTHY"),
            "Prefill:m": deployment(0, 1, "DEPLOY_FAILED", REPLICA_FAILED),
        },
    }
    assert failure(details) == "Prefill:m: ValueError: Unknown engine argument: max_num_seq"
    assert failure({"message": "cannot import their:app", "deployments": {}}) == "cannot import their:app"
