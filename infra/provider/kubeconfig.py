"""A kubeconfig as a way into a cluster: read, judged in one line, and made a client of; its secrets are never told."""

import os
import shutil
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from infra.provider.resource import ResourceError

# Kept open, and so many things a preflight asks at once (gather.py): about 100 of them then take 1.0 to 1.5 s where a
# round trip takes 0.1 s (measured, docs/reference/preflight.md).
CONNECTIONS = 16
_DOKS = ".k8s.ondigitalocean.com"
_LISTS = {"clusters": "cluster", "users": "user", "contexts": "context"}  # and what their entries hold
# What the official client reads of them as text; it fails on another value where it uses it, or takes it for one.
_TEXTS = {
    "context": ("cluster", "user"),
    "cluster": ("server", "certificate-authority", "certificate-authority-data", "tls-server-name", "proxy-url"),
    "user": (
        *("token", "tokenFile", "username", "password"),
        *("client-certificate", "client-certificate-data", "client-key", "client-key-data"),
    ),
}
Json = dict[str, Any]


class Selection(NamedTuple):
    """What is to be used of a kubeconfig: the names in it, and the entries `user` and `cluster`. source: what to call
    the kubeconfig.
    """

    source: str
    context: str
    user_name: str
    user: Json
    cluster_name: str
    cluster: Json


class Connection(NamedTuple):
    """server: URL. user: the name in the kubeconfig. source: what to call the kubeconfig. renewal: how to get
    credentials that are valid again. client: the official ApiClient.
    """

    server: str
    user: str
    source: str
    renewal: str
    client: Any


def connect(kubeconfig: str, context: str) -> Connection:
    """`kubeconfig`: a path or the content of a file; empty: $KUBECONFIG, else ~/.kube/config. Raises ResourceError."""
    content = is_content(kubeconfig)
    source = "the kubeconfig" if content else f"kubeconfig {_path(kubeconfig)}"
    document = _parse(kubeconfig, source) if content else _read(_path(kubeconfig))
    chosen = _select(document, context, source)
    from infra.provider.kubernetes_client import client

    way = client(document if content else _path(kubeconfig), chosen)
    server = chosen.cluster["server"]
    renewal = _renewal(server, content, "exec" in chosen.user)
    return Connection(server, chosen.user_name or "nobody", source, renewal, way)


def is_content(kubeconfig: str) -> bool:
    """Whether it is the text of a kubeconfig and not a path."""
    return "\n" in kubeconfig or kubeconfig.lstrip().startswith("{")


def current_context(path: str) -> str:
    """The name of a file's current context; empty when there is none or no such file: connect() says what is wrong."""
    try:
        return str(_read(path).get("current-context") or "")
    except ResourceError:
        return ""


def unreadable(path: str) -> str:
    """Why nothing can be read from a file, in a line; empty for one that is a kubeconfig."""
    try:
        _read(path)
    except ResourceError as error:
        return str(error)
    return ""


def contexts(path: str) -> list[str]:
    """The names of a file's contexts. Raises ResourceError for one that is no kubeconfig."""
    return sorted(_by_name(_read(path), "contexts"))


def leads_nowhere(path: str, context: str) -> str:
    """Why this context of a file is no way into any cluster, in a line; empty for one that may be. Asks nobody."""
    try:
        _select(_read(path), context, f"kubeconfig {path}")
    except ResourceError as error:
        return str(error)
    return ""


def _path(kubeconfig: str) -> str:
    """One file, or several as $KUBECONFIG may name them."""
    return kubeconfig or os.environ.get("KUBECONFIG") or "~/.kube/config"


def _read(path: str) -> Json:
    """The files of `path` merged as kubectl does: the first of a name wins. Only to look: the client reads again."""
    merged: Json = {}
    files = [Path(name).expanduser() for name in path.split(os.pathsep) if name]
    for file in (there := [file for file in files if file.exists()]):
        try:
            document = _parse(file.read_text(), f"kubeconfig {file}")
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or "not a text file"
            raise ResourceError(f"kubeconfig {file} cannot be read: {reason}") from None
        for key in _LISTS:
            merged[key] = [*merged.get(key, []), *(document.get(key) or [])]
        merged["current-context"] = merged.get("current-context") or document.get("current-context")
    if not there:
        raise ResourceError(f"kubeconfig {path} does not exist; set cluster.kubeconfig, or KUBECONFIG")
    return merged


def _parse(text: str, source: str) -> Json:
    """The errors never quote the text: it holds credentials."""
    try:
        document = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError):  # ValueError: what looks like a date and is none
        document = None
    if not isinstance(document, dict):
        raise ResourceError(f"{source} is not a YAML document with clusters, users and contexts")
    for key, content in _LISTS.items():
        if not _is_list_of(content, document.get(key)):
            raise ResourceError(
                f"{source} is malformed: `{key}` is not a list of entries, each with `name` and `{content}`; "
                "get a new kubeconfig"
            )
    if not isinstance(document.get("current-context") or "", str):
        raise ResourceError(f"{source} is malformed: `current-context` is not a name; get a new kubeconfig")
    return document


def _is_list_of(content: str, entries: Any) -> bool:
    """None is an empty list, and nothing an empty entry, as kubectl has it."""
    return isinstance(entries or [], list) and all(
        isinstance(entry, dict)
        and isinstance(entry.get("name", ""), str)
        and isinstance(entry.get(content) or {}, dict)
        for entry in entries or []
    )


def _select(document: Json, context: str, source: str) -> Selection:
    contexts = _by_name(document, "contexts")
    name = context or document.get("current-context") or ""
    if name not in contexts:
        which = f"context {name!r} is not in {source}" if name else f"{source} has no current context"
        raise ResourceError(f"{which}; set cluster.context to one of: {', '.join(sorted(contexts)) or 'none there'}")
    _check_values("context", name, contexts[name], source)
    user_name, cluster_name = (contexts[name].get(key) or "" for key in ("user", "cluster"))
    user = _by_name(document, "users").get(user_name, {})
    cluster = _by_name(document, "clusters").get(cluster_name, {})
    _check_values("cluster", cluster_name, cluster, source)
    if not cluster.get("server"):
        raise ResourceError(f"context {name!r} of {source} has no cluster with a `server` URL; get a new kubeconfig")
    _check_values("user", user_name, user, source)
    command = (user.get("exec") or {}).get("command") or ""
    if command and "/" not in command and not shutil.which(command):
        raise ResourceError(f"{source} gets its credentials from `{command}`, which is not on PATH; install it")
    return Selection(source, name, user_name, user, cluster_name, cluster)


def _check_values(kind: str, name: str, entry: Json, source: str) -> None:
    """Raises ResourceError in a line that names the key, and never the value. None is as good as no key."""
    fault = next((f"`{key}` is not text" for key in _TEXTS[kind] if not isinstance(entry.get(key) or "", str)), "")
    if not isinstance(entry.get("insecure-skip-tls-verify") or False, bool):
        fault = "`insecure-skip-tls-verify` is neither true nor false"  # "false" in quotes would count as true
    elif kind == "user" and not _is_exec(entry.get("exec") or {}):
        fault = "`exec` is not `command`, `apiVersion`, `args` and `env`, all text"
    if fault:
        raise ResourceError(f"{source} is malformed: in {kind} {name!r} {fault}; put it right, or get a new kubeconfig")


def _is_exec(plugin: Any) -> bool:
    """Looked at here: where a key of it has no value, the official client logs the whole entry of the user."""
    return (
        isinstance(plugin, dict)
        and all(isinstance(plugin.get(key, ""), str) for key in ("command", "apiVersion"))
        and isinstance(plugin.get("args") or [], list)
        and all(isinstance(argument, str) for argument in plugin.get("args") or [])
        and isinstance(plugin.get("env") or [], list)
        and all(isinstance(variable, dict) for variable in plugin.get("env") or [])
        and all(isinstance(it.get(key), str) for it in plugin.get("env") or [] for key in ("name", "value"))
    )


def _by_name(document: Json, key: str) -> dict[str, Json]:
    return {entry.get("name", ""): entry.get(_LISTS[key]) or {} for entry in reversed(document.get(key) or [])}


def _renewal(server: str, content: bool, has_plugin: bool) -> str:
    """How to get credentials that are valid again."""
    if content:  # from the state of the stack that made the cluster
        # Not a plain refresh: what is in the cluster cannot be read with credentials that have expired.
        how = "`pulumi refresh --target '**:KubernetesCluster::**'`, then `pulumi up`"
        return f"run {how} in the stack that owns the cluster"
    if _DOKS in server:  # DigitalOcean's kubeconfigs hold a token of 7 days unless their maker chose otherwise
        return "DOKS kubeconfigs expire after 7 days: doctl kubernetes cluster kubeconfig save CLUSTER"
    return "log in with its credential plugin again" if has_plugin else "get a new kubeconfig"
