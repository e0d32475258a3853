"""IPv4 ranges of a cluster that a stack makes: of its VPC, and of who may reach its API server."""

from ipaddress import IPv4Network, ip_network
from typing import Annotated

from pydantic import AfterValidator

_PRIVATE = [IPv4Network(text) for text in ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16")]  # RFC 1918
_VPC_PREFIXES = range(16, 25)  # "may not be larger than /16 or smaller than /24" (DigitalOcean's SDK, Vpc.ip_range)


def _address_range(text: str) -> str:
    try:
        IPv4Network(text)
    except ValueError as error:
        raise ValueError(f"is no IPv4 range such as 203.0.113.0/24 ({error})") from None
    return text


def _vpc_range(text: str) -> str:
    network = IPv4Network(_address_range(text))
    if network.prefixlen not in _VPC_PREFIXES or not any(network.subnet_of(private) for private in _PRIVATE):
        raise ValueError("cannot be a VPC's range: write a private one (RFC 1918) from /16 to /24")
    return text


def _not_everybody(text: str) -> str:
    """The firewall is there to keep most of the internet away; without one the list is empty."""
    try:
        everybody = ip_network(text).prefixlen == 0
    except ValueError:
        everybody = False
    if everybody:
        raise ValueError("is everybody, and the firewall is closed by design: name the networks, or leave the list out")
    return _address_range(text)


VpcRange = Annotated[str, AfterValidator(_vpc_range)]
AddressRange = Annotated[str, AfterValidator(_not_everybody)]
