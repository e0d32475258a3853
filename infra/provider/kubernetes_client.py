"""The official client for what a kubeconfig says, or one line why that cannot be used; no value of it is told.

Imported where a cluster is connected to: the official client costs 0.3 s (measured).
"""

import os
from urllib.parse import urlsplit

from kubernetes.client import ApiClient, Configuration
from kubernetes.client.rest import should_bypass_proxies
from kubernetes.config import load_kube_config, load_kube_config_from_dict
from urllib3 import disable_warnings
from urllib3.util import parse_url

from infra.provider.kubeconfig import CONNECTIONS, Json, Selection
from infra.provider.resource import ResourceError

_CREDENTIALS = ("auth-provider", "token", "tokenFile", "exec")  # in the order in which the official client looks


class _Configuration(Configuration):
    """With a token that is looked at each time it is used: an expired one is renewed by the official client itself."""

    def __init__(self, chosen: Selection) -> None:
        # Without urllib3's three retries: they would make 40 s of the 10 s to connect, and hide the cause.
        super().__init__(connection_pool_maxsize=CONNECTIONS, retries=False)
        self._chosen = chosen

    def get_api_key_with_prefix(self, identifier: str, alias: str | None = None) -> str | None:
        try:
            value = super().get_api_key_with_prefix(identifier, alias)
        except Exception:  # whatever the libraries behind an auth-provider raise; it may quote what they were given
            raise _no_credentials(self._chosen) from None
        return value and _sendable(value, self._chosen)


def client(kubeconfig: Json | str, chosen: Selection) -> ApiClient:
    """`kubeconfig`: a path, or what was read. The client keeps a client key, no token, in a 0600 file until this
    process ends: ssl reads files.
    """
    _check_server(chosen)
    configuration = _Configuration(chosen)
    try:
        if isinstance(kubeconfig, str):
            load_kube_config(kubeconfig, chosen.context, client_configuration=configuration)
        else:
            load_kube_config_from_dict(kubeconfig, chosen.context, client_configuration=configuration)
    except Exception:  # of any library that reads a part of it; its text may quote an entry with its token
        if chosen.user.get("auth-provider"):
            raise _no_credentials(chosen) from None
        raise ResourceError(
            f"context {chosen.context!r} of {chosen.source} is malformed; get a new kubeconfig"
        ) from None
    if chosen.user.get("exec") and not (configuration.api_key or configuration.cert_file):
        raise _no_credentials(chosen)
    configuration.get_api_key_with_prefix("BearerToken")  # refused now, not with the first request
    _check_proxy(configuration, chosen)
    if not configuration.verify_ssl:
        disable_warnings()  # who wrote insecure-skip-tls-verify into the kubeconfig knows
    return ApiClient(configuration)


def _no_credentials(chosen: Selection) -> ResourceError:
    giver = (chosen.user.get("exec") or {}).get("command") if "exec" in chosen.user else "auth-provider"
    why = f"run `kubectl --context {chosen.context} version` to see why"
    return ResourceError(f"{chosen.source} gets its credentials from `{giver}`, which failed; {why}")


def _sendable(value: str, chosen: Selection) -> str:
    """What goes into the header Authorization. http.client quotes in its error what it cannot send."""
    kind, _, token = value.partition(" ")
    origin = next((key for key in _CREDENTIALS if chosen.user.get(key)), "password")
    if origin == "tokenFile":  # editors end files with a newline, and kubectl takes it off
        token = token.strip()
    if not token or not _visible(token):
        raise ResourceError(
            f"the token of user {chosen.user_name!r} in {chosen.source}, from `{origin}`, is empty or has white space "
            "or other characters in it that no token has; put the token there and nothing else, or get a new kubeconfig"
        )
    return f"{kind} {token}"


def _visible(text: str) -> bool:
    """Only the characters of ASCII that leave ink: no others are in tokens and URLs."""
    return all("!" <= character <= "~" for character in text)


def _check_server(chosen: Selection) -> None:
    server = str(chosen.cluster["server"])
    fix = "write https://HOST:PORT"
    if "@" in server:
        fault, fix = "holds a user or password", "remove it, and put credentials into the entry of the user"
    elif "?" in server or "#" in server:
        fault = "has `?` or `#` in it"  # what follows may be a token, and no path can be put behind it
    else:
        fault = _url_fault(server)
    if fault:
        raise ResourceError(f"`server` of cluster {chosen.cluster_name!r} in {chosen.source} {fault}; {fix}")


def _check_proxy(configuration: Configuration, chosen: Selection) -> None:
    """Of a proxy that is going to be used. urllib3's own errors name no setting, and quote the URL."""
    proxy = configuration.proxy
    if not proxy or should_bypass_proxies(configuration.host, configuration.no_proxy or ""):
        return
    fix = "write http://HOST:PORT"
    if "://" in proxy and proxy.lower().startswith("socks"):
        fault, fix = "names a SOCKS proxy, which this program does not support", "use an http:// proxy"
    elif not (fault := _url_fault(proxy)) and "@" in (parse_url(proxy).request_uri + (parse_url(proxy).fragment or "")):
        # One that ends the host early: what follows would be shown as if it were no password.
        fault, fix = "has `/`, `?` or `#` in its user or password", "write them as %2F, %3F, %23"
    if fault:
        setting = f"`proxy-url` of cluster {chosen.cluster_name!r} in {chosen.source}"
        if not chosen.cluster.get("proxy-url"):
            setting = f"the environment variable {_proxy_variable(configuration.host)}"
        raise ResourceError(f"{setting} {fault}; {fix}")


def _proxy_variable(server: str) -> str:
    """That the proxy for a server is from: lower case goes first (urllib.request.getproxies)."""
    kinds = [f"{kind}_proxy" for kind in (urlsplit(server).scheme, "all")]
    names = [name for kind in kinds for name in (kind, kind.upper())]
    return next((name for name in names if os.environ.get(name)), names[1])


def _url_fault(url: str) -> str:
    """What is wrong with it, without a word of it."""
    if not _visible(url):
        return "has white space or other characters in it that no URL has"
    if not url.startswith(("http://", "https://")):
        return "begins with neither http:// nor https://"
    try:
        whole = parse_url(url).host and urlsplit(url).hostname  # urllib3 connects, urlsplit() is for our messages
    except ValueError:  # urllib3's LocationParseError is one
        whole = None
    return "" if whole else "is not a URL with a host, and a number as port if any"
