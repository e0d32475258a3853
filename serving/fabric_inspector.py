"""The DaemonSet whose pods say, one for each GPU node, what fabric the node has (serving/fabric)."""

from typing import Any

from serving.kubernetes_names import FABRIC_INSPECTOR, labels
from serving.stack import Stack

Manifest = dict[str, Any]
# What is read and is in no container by itself: the kernel's options, and the groups of the GPUs' devices. /sys and
# /proc are those of the container: with host network they show the node's devices, addresses and routes.
_HOST_PATHS = ("/boot", "/dev/dri")
# The user of Ray's images. All that is read is readable for everybody.
_USER = 1000
# Reading takes 0.1 s of a core; Python with pydantic and rich is 60 MiB (measured in this repository's environment).
_RESOURCES = {"requests": {"cpu": "50m", "memory": "128Mi"}, "limits": {"memory": "256Mi"}}


def inspector_metadata(stack_name: str, namespace: str) -> Manifest:
    """Metadata of the DaemonSet."""
    return {
        "name": FABRIC_INSPECTOR,
        "namespace": namespace,
        "labels": labels(stack_name, FABRIC_INSPECTOR),
        # FabricFacts waits for it, for what its pods say, and tells why it waits.
        "annotations": {"pulumi.com/skipAwait": "true"},
    }


def inspector_spec(stack: Stack, stack_name: str) -> Manifest:
    """Its spec. Its pods ask for no GPU and no RDMA device, so they run beside engines, and may do nothing."""
    label = labels(stack_name, FABRIC_INSPECTOR)
    return {
        "selector": {"matchLabels": label},
        # All at once: nothing depends on a pod that is there without a break.
        "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "100%"}},
        "template": {"metadata": {"labels": label}, "spec": _pod(stack)},
    }


def _pod(stack: Stack) -> Manifest:
    profile, images = stack.profile, stack.required_images
    paths = [(path.strip("/").replace("/", "-"), path) for path in _HOST_PATHS]
    container = {
        "name": FABRIC_INSPECTOR,
        "image": images.engine,
        "command": ["python", "-m", "serving.fabric", "inspect", "--format", "json", "--stay"],
        "env": [{"name": "PYTHONDONTWRITEBYTECODE", "value": "1"}],
        "resources": _RESOURCES,
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        "volumeMounts": [{"name": name, "mountPath": path, "readOnly": True} for name, path in paths],
    }
    spec: Manifest = {
        "automountServiceAccountToken": False,  # it says what it found in its log, and asks nobody for anything
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": 5,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": _USER,
            "runAsGroup": _USER,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "tolerations": [toleration.model_dump(exclude_none=True) for toleration in profile.tolerations],
        "containers": [container],
        # `Directory`: where it is missing the pod does not start, and nothing is made on the node.
        "volumes": [{"name": name, "hostPath": {"path": path, "type": "Directory"}} for name, path in paths],
        **images.pull_secrets,
    }
    if profile.network == "host":
        spec |= {"hostNetwork": True, "dnsPolicy": "Default"}  # network devices are those of a namespace
    if profile.node_selector:
        spec["nodeSelector"] = dict(profile.node_selector)
    return spec
