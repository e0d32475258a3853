"""The stack's Kubernetes API, with what measuring needs besides: logs, and a client for exec.

Objects stay dictionaries: what a CronJob's template holds must reach the Job unchanged, also where this client's models
are older than the cluster.
"""

from collections.abc import Iterator
from typing import Any

import urllib3
from kubernetes.client.exceptions import ApiException

from benchmarks.errors import BenchmarkError
from infra.benchmark_job.outputs import ClusterAccess
from infra.provider.kubernetes_api import KubernetesApi, Unavailable
from infra.provider.resource import ResourceError

Json = dict[str, Any]
# What is shown as one line: this package's and benchmarks' own, and the provider's.
PROBLEMS = (BenchmarkError, ResourceError)
_CONNECT_S = 10.0


class KubeApi(KubernetesApi):
    """One cluster. Raises ResourceError in one line, Unavailable for what may pass."""

    def __init__(self, access: ClusterAccess) -> None:
        super().__init__(access.kubeconfig, access.context)

    @property
    def configuration(self) -> Any:
        """Server and credentials, for another client of the same cluster."""
        return self._client.configuration

    def text(self, path: str, **query: str) -> str:
        """A log; empty where there is none (404)."""
        status, body = self._request("GET", path, query)
        return "" if status == 404 else body.decode("utf-8", errors="replace")

    def stream(self, path: str, quiet_s: float, **query: str) -> Iterator[bytes]:
        """The pieces of a long answer as they come, until it ends, breaks, or nothing has come for `quiet_s`.

        The three cannot be told apart by who reads; ask for the state of things, and again from the beginning.
        """
        try:
            request = self._client.param_serialize(
                "GET",
                path,
                query_params=list(query.items()),
                header_params={"Accept": "application/json, */*"},
                auth_settings=["BearerToken"],
            )
            answer = self._client.call_api(*request, _request_timeout=(_CONNECT_S, quiet_s)).response
        except (urllib3.exceptions.HTTPError, ApiException, OSError) as error:
            raise Unavailable(f"{self} does not answer: {type(error).__name__}") from None
        try:
            if answer.status != 200:
                reason = " ".join(answer.data.decode("utf-8", errors="replace").split())[:200]
                raise Unavailable(f"{self} answered {answer.status}: {reason}")
            yield from answer.stream(amt=None, decode_content=False)
        except (urllib3.exceptions.HTTPError, OSError):
            return
        finally:
            answer.close()
