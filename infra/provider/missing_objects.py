"""Objects that Pulumi's state has and the cluster has not: deleted by hand, or by a `pulumi destroy` that broke off.

Pulumi's Kubernetes provider looks at an object only when it changes it, and fails with `not found` then.
"""

from concurrent.futures import ThreadPoolExecutor

from infra.provider.kubeconfig import CONNECTIONS
from infra.provider.kubernetes_api import Forbidden, Json, KubernetesApi

Paths = dict[str, str]  # what to call an object -> where it would be


def there(api: KubernetesApi, objects: Paths) -> dict[str, Json]:
    """Those that are there; so does one count that may not be looked at. Raises ResourceError."""

    def look(path: str) -> Json | None:
        try:
            return api.get(path)
        except Forbidden:
            return {}

    with ThreadPoolExecutor(CONNECTIONS) as pool:
        found = dict(zip(objects, pool.map(look, objects.values()), strict=True))
    return {name: it for name, it in found.items() if it is not None}


def missing(api: KubernetesApi, namespace: str, objects: Paths) -> list[str]:
    """One line for what is gone, and one for what is on its way out. Raises ResourceError."""
    found = there(api, objects)
    gone = [name for name in objects if name not in found]
    if (home := f"Namespace {namespace}") in gone:
        return [f"{home} is gone, though Pulumi's state has it; run `pulumi refresh`, then `pulumi up`"]
    leaving = [name for name, it in found.items() if it.get("metadata", {}).get("deletionTimestamp")]
    lines: list[str] = []
    if gone:
        lines.append(
            f"{_are(gone, 'gone')} from namespace {namespace}, though Pulumi's state has {_it(gone)}; run "
            "`pulumi refresh`, then `pulumi up`"
        )
    if leaving:
        lines.append(
            f"{_are(leaving, 'being deleted')} in namespace {namespace}, though Pulumi's state has {_it(leaving)}; "
            "wait until that is done, then run `pulumi refresh` and `pulumi up`"
        )
    return lines


def _are(names: list[str], what: str) -> str:
    return f"{', '.join(names)} {'is' if len(names) == 1 else 'are'} {what}"


def _it(names: list[str]) -> str:
    return "it" if len(names) == 1 else "them"
