"""A stand-in for DigitalOcean's block storage driver: volumes that claims are bound to, with nothing stored in them.

python -m tools.rehearsal.volumes KUBECONFIG       (in the namespace)

Real are the claims, the volumes and their life cycle: the controller manager binds, releases and protects them. As
the driver does, it makes a volume for a pending claim of its storage classes, refuses shared access, and removes a
released volume whose reclaim policy is Delete.
"""

import sys
import time
from pathlib import Path
from typing import Any

import urllib3
from kubernetes import client, config

PROVISIONER = "dobs.csi.digitalocean.com"
DEFAULT_CLASS = "do-block-storage"
RETAIN_CLASS = "do-block-storage-retain"
_POLL_S = 0.3
_PROVISIONED_BY = "pv.kubernetes.io/provisioned-by"
_SHARED = {"ReadWriteMany", "ReadOnlyMany"}


def storage_classes() -> list[dict[str, Any]]:
    """The two that DOKS installs; the first is the cluster's default."""
    default = {"storageclass.kubernetes.io/is-default-class": "true"}
    return [
        {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "StorageClass",
            "metadata": {"name": name, "annotations": annotations},
            "provisioner": PROVISIONER,
            "reclaimPolicy": policy,
            "allowVolumeExpansion": True,
            "volumeBindingMode": "Immediate",
        }
        for name, policy, annotations in ((DEFAULT_CLASS, "Delete", default), (RETAIN_CLASS, "Retain", {}))
    ]


def csi_driver() -> dict[str, Any]:
    """Says that volumes need no attaching: nobody would do it for a simulated node."""
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSIDriver",
        "metadata": {"name": PROVISIONER},
        "spec": {"attachRequired": False},
    }


class Driver:
    """One look at everything at a time; between two it keeps only which claims it has refused."""

    def __init__(self, api: client.ApiClient) -> None:
        self._core: Any = client.CoreV1Api(api)
        self._storage: Any = client.StorageV1Api(api)
        self._refused: set[str] = set()

    def look(self) -> None:
        """Answer what is pending, remove what is released."""
        claims = self._core.list_persistent_volume_claim_for_all_namespaces().items
        pending = [claim for claim in claims if claim.status.phase == "Pending" and not claim.spec.volume_name]
        volumes = self._core.list_persistent_volume().items
        for volume in volumes:
            if _to_be_removed(volume):
                self._core.delete_persistent_volume(volume.metadata.name)
        if pending:
            classes = {found.metadata.name: found for found in self._storage.list_storage_class().items}
            made = {volume.metadata.name for volume in volumes}
            for claim in pending:
                found = classes.get(claim.spec.storage_class_name)
                if found and found.provisioner == PROVISIONER and _name(claim) not in made:
                    self._answer(claim, found)

    def _answer(self, claim: Any, storage_class: Any) -> None:
        if _SHARED & set(claim.spec.access_modes):
            self._refuse(claim)
        else:
            self._core.create_persistent_volume(_volume(claim, storage_class))

    def _refuse(self, claim: Any) -> None:
        """An event, once: the claim stays pending, as it does on DOKS."""
        if claim.metadata.uid in self._refused:
            return
        self._refused.add(claim.metadata.uid)
        reference = {"kind": "PersistentVolumeClaim", "apiVersion": "v1", "name": claim.metadata.name}
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        self._core.create_namespaced_event(
            claim.metadata.namespace,
            {
                "metadata": {"generateName": f"{claim.metadata.name}."},
                "involvedObject": {
                    **reference,
                    "namespace": claim.metadata.namespace,
                    "uid": claim.metadata.uid,
                },
                "type": "Warning",
                "reason": "ProvisioningFailed",
                "message": "volume capabilities are not supported: block storage attaches to one node (ReadWriteOnce)",
                "source": {"component": PROVISIONER},
                "firstTimestamp": now,
                "lastTimestamp": now,
                "count": 1,
            },
        )


def _to_be_removed(volume: Any) -> bool:
    ours = (volume.metadata.annotations or {}).get(_PROVISIONED_BY) == PROVISIONER
    released = volume.status.phase == "Released" and not volume.metadata.deletion_timestamp
    return ours and released and volume.spec.persistent_volume_reclaim_policy == "Delete"


def _name(claim: Any) -> str:
    return f"pvc-{claim.metadata.uid}"


def _volume(claim: Any, storage_class: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": _name(claim), "annotations": {_PROVISIONED_BY: PROVISIONER}},
        "spec": {
            "storageClassName": storage_class.metadata.name,
            "persistentVolumeReclaimPolicy": storage_class.reclaim_policy,
            "capacity": {"storage": claim.spec.resources.requests["storage"]},
            "accessModes": claim.spec.access_modes,
            "csi": {"driver": PROVISIONER, "volumeHandle": f"simulated-{claim.metadata.uid}"},
            "claimRef": {
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "namespace": claim.metadata.namespace,
                "name": claim.metadata.name,
                "uid": claim.metadata.uid,
            },
        },
    }


def main(kubeconfig: Path) -> None:
    driver = Driver(config.new_client_from_config(str(kubeconfig)))
    while True:
        try:
            driver.look()
        except (client.ApiException, urllib3.exceptions.HTTPError, OSError) as error:
            print(f"looking again: {error!r}"[:300], flush=True)
        time.sleep(_POLL_S)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
