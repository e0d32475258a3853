"""What the Kubernetes API and container runtimes take for a name, a label, a resource, an image or a path.

An API server refuses a pod that has something else only when KubeRay makes it, after the pods before it are gone. So
settings are held against the same grammar, which each type says in words.
"""

import posixpath
import re
from ipaddress import IPv6Address
from typing import Annotated

from pydantic import AfterValidator

# apimachinery pkg/util/validation/validation.go: dns1123LabelFmt, at most 63 characters.
DNS_LABEL = r"[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?"
# The same file: dns1123SubdomainFmt, at most 253 characters; its parts may be longer than 63.
_DNS_PART = r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?"
_DNS_NAME = rf"(?=.{{1,253}}$){_DNS_PART}(?:\.{_DNS_PART})*"
# The same file: qualifiedNameFmt and labelValueFmt, at most 63 characters.
_NAME = r"[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
_LABEL_KEY = rf"(?:(?=[^/]{{1,253}}/){_DNS_PART}(?:\.{_DNS_PART})*/)?{_NAME}"
# kubernetes pkg/apis/core/v1/helper/helpers.go IsExtendedResourceName: a domain that is not Kubernetes' own, and
# `requests.` before the whole, as quotas have it, must still be a label's key: 244 characters for the domain.
_EXTENDED_RESOURCE = rf"(?!requests\.)(?![^/]*kubernetes\.io/)(?=[^/]{{1,244}}/){_DNS_PART}(?:\.{_DNS_PART})*/{_NAME}"
# github.com/distribution/reference, reference.go ("Grammar") and regexp.go; at most 255 characters before the tag.
# Narrower in two points: hosts in lower case, so that `Team/image` is no host; digests that registries have.
_IMAGE_HOST = rf"(?:{_DNS_PART}(?:\.{_DNS_PART})*|\[[a-f0-9:]+\])(?::[0-9]+)?"
_IMAGE_PATH = r"[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*"
_IMAGE = (
    rf"(?=[^@]{{1,384}}(?:@|$))(?:{_IMAGE_HOST}/)?{_IMAGE_PATH}(?:/{_IMAGE_PATH})*"
    r"(?::[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?(?:@sha256:[a-f0-9]{64}|@sha512:[a-f0-9]{128})?"
)
IMAGE_FOLDER = rf"(?=.{{1,200}}$){_IMAGE_HOST}(?:/{_IMAGE_PATH})*"
# linux net/core/dev.c dev_valid_name; alternative names may be longer than its 15 characters.
_INTERFACE = r"[^\s/:]+"


def _in_words(pattern: str, wanted: str, *, or_empty: bool = False) -> AfterValidator:
    """A text of this pattern, or a line that says what is wanted."""

    def check(text: str) -> str:
        if not (or_empty and not text) and not re.fullmatch(pattern, text):
            raise ValueError(f"has to be {wanted}")
        return text

    return AfterValidator(check)


_A_DNS_NAME = "a DNS name: lower-case letters, digits, - and . inside"
_A_RESOURCE = "an extended resource DOMAIN/NAME such as amd.com/gpu: the domain in lower case and not Kubernetes' own"

DnsName = Annotated[str, _in_words(_DNS_NAME, _A_DNS_NAME)]
DnsNameOrEmpty = Annotated[str, _in_words(_DNS_NAME, _A_DNS_NAME, or_empty=True)]
NamespaceOrEmpty = Annotated[
    str, _in_words(DNS_LABEL, "a Kubernetes name: at most 63 lower-case letters, digits and - inside", or_empty=True)
]
LabelKey = Annotated[
    str, _in_words(_LABEL_KEY, "NAME or DOMAIN/NAME, a label's key: a name of at most 63 letters, digits, -, _ and .")
]
LabelValue = Annotated[
    str,
    _in_words(_NAME, "a label's value: at most 63 letters, digits, and -, _ and . inside", or_empty=True),
]
ExtendedResource = Annotated[str, _in_words(_EXTENDED_RESOURCE, _A_RESOURCE)]
ExtendedResourceOrEmpty = Annotated[str, _in_words(_EXTENDED_RESOURCE, _A_RESOURCE, or_empty=True)]
# NVIDIA's shared device plugin puts `rdma/` before the name itself (infra/fabric.py).
RdmaResource = Annotated[str, _in_words(rf"(?:rdma/)?{_NAME}", "rdma/NAME or NAME: letters, digits, -, _ and . inside")]
Interface = Annotated[str, _in_words(_INTERFACE, "the name of a network interface, without white space, / and :")]


def _with_digest(reference: str) -> str:
    if reference and "@" not in reference:
        raise ValueError(
            "has no digest, and a tag can be another image tomorrow: append the one that "
            f"`docker buildx imagetools inspect {reference}` prints"
        )
    return reference


ImageOrEmpty = Annotated[
    str,
    _in_words(
        _IMAGE,
        "an image such as registry.example.com:5000/team/engine@sha256:DIGEST: "
        "no http://, no white space, lower case before the tag, no empty tag, a whole digest",
        or_empty=True,
    ),
    AfterValidator(_with_digest),
]
ImageFolder = Annotated[
    str,
    _in_words(
        IMAGE_FOLDER,
        "a registry, and where in it: registry.example.com/team, no http://, no tag, lower case",
    ),
]


def _normalised(path: str) -> str:
    """hostPath and NFS: kubernetes pkg/apis/core/validation/validation.go, validatePathNoBacksteps and path.IsAbs."""
    if not path.startswith("/") or ".." in path.split("/") or not path.isprintable():
        raise ValueError("has to be an absolute path without ..")
    if (plain := posixpath.normpath("/" + path.lstrip("/"))) != path:
        raise ValueError(f"has more / or . than it needs: write {plain}")
    return path


def _host(server: str) -> str:
    """A name or an address. NFS takes any text here, and the mount of the pod fails."""
    try:
        good = bool(re.fullmatch(r"[^\s/:]+", server)) or bool(IPv6Address(server))
    except ValueError:
        good = False
    if not good:
        raise ValueError("has to be a host's name or address, without white space, scheme, port and path")
    return server


AbsolutePathOrEmpty = Annotated[str, AfterValidator(lambda path: path and _normalised(path))]
AbsolutePath = Annotated[str, AfterValidator(_normalised)]
Host = Annotated[str, AfterValidator(_host)]
