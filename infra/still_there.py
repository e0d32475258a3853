"""Whether an object is still there, asked before Pulumi changes it: in a preview too, and ahead of its provider.

Pulumi's Kubernetes provider would end with `configmaps "benchmark-target" not found`. What is not to be changed is
looked at by RayServiceReady (infra/provider/ray_service_ready.py), which depends on all of them and comes too late.
"""

import asyncio
import contextlib

import pulumi

from infra.cluster.access import KubernetesAccess
from infra.provider.kubernetes_api import KubernetesApi
from infra.provider.missing_objects import missing
from infra.provider.preflight.names import paths
from infra.provider.resource import ResourceError
from serving.fabric_plan import fabric_plan
from serving.kubernetes_names import HUGGING_FACE_TOKEN
from serving.stack import Stack


def objects_of(stack: Stack, namespace: str) -> dict[str, str]:
    """What this stack makes under a fixed name -> where it is in the API."""
    inputs = {
        "namespace": namespace,
        "hostDevices": stack.profile.host_devices,
        "monitoring": stack.monitoring,
        "inspectsFabric": fabric_plan(stack).inspect,
    }
    named = paths(inputs)
    if stack.hugging_face_token is None:
        del named[f"Secret {HUGGING_FACE_TOKEN}"]
    return {f"Namespace {namespace}": f"/api/v1/namespaces/{namespace}", **named}


def still_there(stack: Stack, namespace: str, access: KubernetesAccess) -> pulumi.ResourceOptions:
    """Options for the resources in a namespace: one that is gone ends the update with one line."""
    objects = objects_of(stack, namespace)

    async def look(args: pulumi.ResourceHookArgs) -> None:
        before = args.old_inputs or {}
        name = f"{before.get('kind')} {before.get('metadata', {}).get('name')}"
        kubeconfig = await pulumi.Output.from_input(access.kubeconfig).future()
        if name not in objects or kubeconfig is None:
            return
        lines: list[str] = []
        with contextlib.suppress(ResourceError):  # of the cluster: the provider finds that out, and may wait for it
            api = KubernetesApi(kubeconfig, access.context)
            lines = await asyncio.to_thread(missing, api, namespace, {name: objects[name]})
        if lines:
            raise ResourceError(lines[0])

    hook = pulumi.ResourceHook("still-there", look, pulumi.ResourceHookOptions(on_dry_run=True))
    return pulumi.ResourceOptions(hooks=pulumi.ResourceHookBinding(before_update=[hook]))
