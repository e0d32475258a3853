"""A kubeconfig as a way into a cluster: read, judged in one line, and made a client of; its secrets are never told."""

import os
import shutil
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import yaml

from infra.provider.resource import ResourceError

# Kept open, and so many things a preflight asks at once (gather.py): about 100 of them then take 1.0 to 1.5 s where a
# round trip takes 0.1 s (measured, docs/reference/preflight.md).
CONNECTIONS = 16
_DOKS = ".k8s.ondigitalocean.com"
_LISTS = {"clusters": "cluster", "users": "user", "contexts": "context"}  # and what their entries hold
Json = dict[str, Any]


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
    name, user_name, user, cluster = _select(document, context, source)
    server = str(cluster["server"])
    client = _client(document if content else _path(kubeconfig), name, user, source)
    return Connection(server, user_name or "nobody", source, _renewal(server, content, "exec" in user), client)


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


def _select(document: Json, context: str, source: str) -> tuple[str, str, Json, Json]:
    """(context, user, the user's entry, the cluster's entry) that are to be used."""
    contexts = _by_name(document, "contexts")
    name = context or document.get("current-context") or ""
    if name not in contexts:
        which = f"context {name!r} is not in {source}" if name else f"{source} has no current context"
        raise ResourceError(f"{which}; set cluster.context to one of: {', '.join(sorted(contexts)) or 'none there'}")
    user_name = str(contexts[name].get("user") or "")
    user = _by_name(document, "users").get(user_name, {})
    cluster = _by_name(document, "clusters").get(str(contexts[name].get("cluster") or ""), {})
    if not _has_host(str(cluster.get("server"))):
        raise ResourceError(f"context {name!r} of {source} has no cluster with a `server` URL; get a new kubeconfig")
    if not isinstance(user.get("exec") or {}, dict):
        raise ResourceError(f"context {name!r} of {source} is malformed; get a new kubeconfig")
    command = str((user.get("exec") or {}).get("command") or "")
    if command and "/" not in command and not shutil.which(command):
        raise ResourceError(f"{source} gets its credentials from `{command}`, which is not on PATH; install it")
    return name, user_name, user, cluster


def _by_name(document: Json, key: str) -> dict[str, Json]:
    return {entry.get("name", ""): entry.get(_LISTS[key]) or {} for entry in reversed(document.get(key) or [])}


def _has_host(url: str) -> bool:
    try:
        return bool(urlsplit(url).hostname)
    except ValueError:  # https://[
        return False


def _renewal(server: str, content: bool, has_plugin: bool) -> str:
    """How to get credentials that are valid again."""
    if content:  # from the state of the stack that made the cluster
        # Not a plain refresh: what is in the cluster cannot be read with credentials that have expired.
        how = "`pulumi refresh --target '**:KubernetesCluster::**'`, then `pulumi up`"
        return f"run {how} in the stack that owns the cluster"
    if _DOKS in server:  # DigitalOcean's kubeconfigs hold a token of 7 days unless their maker chose otherwise
        return "DOKS kubeconfigs expire after 7 days: doctl kubernetes cluster kubeconfig save CLUSTER"
    return "log in with its credential plugin again" if has_plugin else "get a new kubeconfig"


def _client(kubeconfig: Json | str, context: str, user: Json, source: str) -> Any:
    """The official client. It keeps a client key, no token, in a 0600 file until this process ends: ssl reads files."""
    from kubernetes.client import ApiClient, Configuration
    from kubernetes.config import ConfigException, load_kube_config, load_kube_config_from_dict
    from urllib3 import disable_warnings

    # Without urllib3's three retries: they would make 40 s of the 10 s to connect, and hide the cause.
    configuration = Configuration(connection_pool_maxsize=CONNECTIONS, retries=False)
    try:
        if isinstance(kubeconfig, str):
            load_kube_config(kubeconfig, context, client_configuration=configuration)
        else:
            load_kube_config_from_dict(kubeconfig, context, client_configuration=configuration)
    except (ConfigException, ValueError, TypeError, KeyError, AttributeError, OSError):
        # Not the exception's own text: it may quote an entry with its token.
        raise ResourceError(f"context {context!r} of {source} is malformed; get a new kubeconfig") from None
    if user.get("exec") and not (configuration.api_key or configuration.cert_file):
        why = f"run `kubectl --context {context} version` to see why"
        raise ResourceError(f"{source} gets its credentials from `{user['exec'].get('command')}`, which failed; {why}")
    if not configuration.verify_ssl:
        disable_warnings()  # who wrote insecure-skip-tls-verify into the kubeconfig knows
    return ApiClient(configuration)
