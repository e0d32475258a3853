"""The outputs of a stack on Kubernetes that measuring needs, as `pulumi stack output --json --show-secrets` says."""

import json
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from benchmarks.errors import BenchmarkError, first_problem

_FROM = "pipe `pulumi stack output --json --show-secrets` into it"


class _Output(BaseModel):
    # The program may export more than is needed here.
    model_config = ConfigDict(extra="ignore", frozen=True, hide_input_in_errors=True)


class Place(_Output):
    """What `infra/benchmark_template.py` made: object names in `namespace`, the stack's name, the default scenario."""

    namespace: str = Field(min_length=1)
    cronjob: str = Field(min_length=1)
    results_claim: str = Field(min_length=1)
    stack: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")
    scenario: str


class ClusterAccess(_Output):
    """kubeconfig: a path, empty for kubectl's own default, or the content. context: empty for its current one."""

    kubeconfig: str = Field(default="", repr=False)
    context: str = ""


class Outputs(_Output):
    """Both together."""

    benchmark_job: Place
    cluster: ClusterAccess


def read_outputs(text: str) -> Outputs:
    """Read the outputs from JSON text. Raises BenchmarkError, which shows nothing of a kubeconfig."""
    try:
        raw: Any = json.loads(text)
    except json.JSONDecodeError:
        raise BenchmarkError(f"standard input is not JSON; {_FROM}") from None
    if not isinstance(raw, dict) or "benchmark_job" not in raw:
        raise BenchmarkError(
            f"no output `benchmark_job` on standard input; {_FROM} for a stack with target: kubernetes"
        )
    try:
        return Outputs.model_validate(raw)
    except ValidationError as error:
        raise BenchmarkError(f"stack output {first_problem(error)}; run `pulumi up` with this checkout") from None
