"""Weights on Kubernetes: the hub's token, and an NFS export that one Job fills once. Other modes make nothing here."""

import pulumi
from pulumi_kubernetes.batch.v1 import Job
from pulumi_kubernetes.core.v1 import PersistentVolume, PersistentVolumeClaim, Secret

from infra.late import Late
from serving.kubernetes_names import HUGGING_FACE_TOKEN, WEIGHTS, labels
from serving.stack import Stack
from serving.weights import (
    DOWNLOAD,
    TOKEN_KEY,
    claim_name,
    claim_spec,
    download_name,
    download_seconds,
    download_spec,
    volume_spec,
)

_ALL_KNOWN = Late()


def weights(
    stack: Stack, stack_name: str, namespace: str, opts: pulumi.ResourceOptions, late: Late = _ALL_KNOWN
) -> list[pulumi.Resource]:
    """Register what the weights of this stack need. Engine pods may start when all of it is done."""
    made: list[pulumi.Resource] = []
    if stack.hugging_face_token is not None:
        made.append(_token(stack.hugging_face_token.get_secret_value(), stack_name, namespace, opts))
    if stack.weights.mode == "nfs":
        made += _filled_export(stack, stack_name, namespace, late, _after(made, opts))
    return made


def _token(token: str, stack_name: str, namespace: str, opts: pulumi.ResourceOptions) -> pulumi.Resource:
    return Secret(
        HUGGING_FACE_TOKEN,
        metadata={"name": HUGGING_FACE_TOKEN, "namespace": namespace, "labels": labels(stack_name, "weights")},
        string_data=pulumi.Output.secret({TOKEN_KEY: token}),
        opts=opts,
    )


def _filled_export(
    stack: Stack, stack_name: str, namespace: str, late: Late, opts: pulumi.ResourceOptions
) -> list[pulumi.Resource]:
    """Volume, claim and the Job that downloads into it, which Pulumi waits for.

    Both go with `pulumi destroy`, and the weights stay: to delete a volume that is retained is to forget the export.
    A volume left behind would keep the next deployment's claim waiting, because it remembers the claim it had.
    """
    label = labels(stack_name, "weights")
    claimed = claim_name(stack)
    volume = PersistentVolume(
        WEIGHTS,
        metadata={"name": f"{namespace}-{claimed}", "labels": label},
        spec=volume_spec(stack, namespace),  # pyright: ignore[reportArgumentType]
        opts=opts,
    )
    claim = PersistentVolumeClaim(
        WEIGHTS,
        metadata={"name": claimed, "namespace": namespace, "labels": label},
        spec={**claim_spec(stack), "volumeName": f"{namespace}-{claimed}"},  # pyright: ignore[reportArgumentType]
        opts=_after([volume], opts),
    )
    wait = pulumi.CustomTimeouts(create=f"{download_seconds(stack)}s", update=f"{download_seconds(stack)}s")
    job = Job(
        DOWNLOAD,
        metadata={
            "name": download_name(stack),
            "namespace": namespace,
            "labels": label,
            # The next update starts a failed download again; it would otherwise look at the failed Job for ever.
            "annotations": {"pulumi.com/replaceUnready": "true"},
        },
        spec=late.of(stack, lambda whole: download_spec(whole, stack_name)),  # pyright: ignore[reportArgumentType]
        opts=pulumi.ResourceOptions.merge(_after([claim], opts), pulumi.ResourceOptions(custom_timeouts=wait)),
    )
    return [volume, claim, job]


def _after(resources: list[pulumi.Resource], opts: pulumi.ResourceOptions) -> pulumi.ResourceOptions:
    return pulumi.ResourceOptions.merge(opts, pulumi.ResourceOptions(depends_on=resources))
