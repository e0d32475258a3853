"""Watches all pods: prepares the directory of each that is bound to a node, plays its end, knows which have ended."""

import threading
import time
from typing import Any

import urllib3
from kubernetes import client, watch

from tools.rehearsal import fabric_stand_in
from tools.rehearsal.pods import COMPLETE, PREPARED, Play, Pods

_RETRY_S = 0.5
_WATCH_S = 300
_AWAY = (client.ApiException, urllib3.exceptions.HTTPError, OSError)


class PodKeeper(threading.Thread):
    """Runs until the process ends; an API server that is away is asked again. `core` is its CoreV1Api."""

    def __init__(self, pods: Pods, core: Any) -> None:
        super().__init__(daemon=True)
        self._pods = pods
        self._core = core
        self._alive: dict[str, tuple[str, str]] = {}  # uid -> (namespace, name)
        self._ended: set[tuple[str, str]] = set()  # whose latest pod has ended
        self._prepared: set[str] = set()  # uids

    def ended(self, namespace: str, pod: str) -> bool:
        """Whether the pod of that name has completed, failed, or is gone."""
        return (namespace, pod) in self._ended

    def run(self) -> None:
        while True:
            try:
                self._follow()
            except _AWAY as error:
                print(f"watching pods again: {error!r}"[:300], flush=True)
                time.sleep(_RETRY_S)

    def _follow(self) -> None:
        listed = self._core.list_pod_for_all_namespaces()
        self.compare(listed.items)
        options = {"resource_version": listed.metadata.resource_version, "timeout_seconds": _WATCH_S}
        for event in watch.Watch().stream(self._core.list_pod_for_all_namespaces, **options):
            if isinstance(event, dict):
                self._look_at(event["object"], gone=event["type"] == "DELETED")

    def compare(self, listed: list[Any]) -> None:
        """Take in all pods that there are. Those that went while nobody watched have ended too."""
        for uid in self._alive.keys() - {pod.metadata.uid for pod in listed}:
            self._ended.add(self._alive.pop(uid))
        for pod in listed:
            self._look_at(pod, gone=False)

    def _look_at(self, pod: Any, gone: bool) -> None:
        key = (pod.metadata.namespace, pod.metadata.name)
        if gone or pod.status.phase in ("Succeeded", "Failed"):
            self._alive.pop(pod.metadata.uid, None)
            self._ended.add(key)
            return
        self._alive[pod.metadata.uid] = key
        if pod.metadata.uid in self._prepared:
            return
        annotations = pod.metadata.annotations or {}
        if pod.spec.node_name and PREPARED not in annotations and not pod.metadata.deletion_timestamp:
            self._prepare(*key, pod.metadata.uid, pod.spec.node_name, _usual(pod))

    def _prepare(self, namespace: str, name: str, uid: str, node: str, usual: Play | None) -> None:
        play = self._pods.prepare(namespace, name, node, usual)
        self._ended.discard((namespace, name))
        self._annotate(namespace, name, uid, PREPARED, "true")
        self._prepared.add(uid)
        if play.outcome:
            end = (namespace, name, uid, COMPLETE, play.outcome)
            threading.Thread(target=self._annotate_later, args=(play.after_s, *end), daemon=True).start()

    def _annotate_later(self, seconds: float, *annotation: str) -> None:
        """Also where the API server is away at that moment."""
        time.sleep(seconds)
        while True:
            try:
                return self._annotate(*annotation)
            except _AWAY:
                time.sleep(_RETRY_S)

    def _annotate(self, namespace: str, name: str, uid: str, key: str, value: str) -> None:
        """The uid makes it that pod and not a later one of that name; a pod that is gone needs no annotation."""
        body = {"metadata": {"uid": uid, "annotations": {key: value}}}
        try:
            self._core.patch_namespaced_pod(name, namespace, body)
        except client.ApiException as error:
            if error.status not in (404, 409):
                raise


def _usual(pod: Any) -> Play | None:
    component = (pod.metadata.labels or {}).get("app.kubernetes.io/component", "")
    return fabric_stand_in.play_of(
        component, pod.metadata.name, pod.spec.node_name, pod.spec.containers[0].command or []
    )
