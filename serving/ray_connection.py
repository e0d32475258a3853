"""Setting `ray`: a Ray cluster that somebody else runs."""

from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, model_validator

from serving.errors import ConfigError
from serving.settings_base import Settings


def _http(text: str) -> str:
    if not text.startswith(("http://", "https://")):
        raise ValueError("has to be a URL that begins with http:// or https://")
    return text


HttpUrl = Annotated[str, AfterValidator(_http)]


class RayConnection(Settings):
    """An existing Ray cluster, reached over its dashboard's REST API."""

    address: HttpUrl = Field(description="dashboard URL, for example https://ray.example.com:8265")
    token_file: str | None = Field(default=None, description="file with Ray's authentication token")
    ca_file: str | None = Field(default=None, description="CA bundle that signs the dashboard's certificate")
    headers_file: str | None = Field(default=None, description="YAML file of HTTP headers for a proxy in front of Ray")
    service_url: HttpUrl = Field(description="URL of the cluster's Serve proxy for clients")
    metrics_urls: list[str] = Field(default_factory=list, description="Prometheus endpoints of the cluster's nodes")

    @model_validator(mode="after")
    def _addresses(self) -> "RayConnection":
        for key, url in (("ray.address", self.address), ("ray.serviceUrl", self.service_url)):
            try:
                parts = urlsplit(url)
                good = bool(parts.hostname) and (parts.port or 1) > 0
            except ValueError:
                parts, good = None, False
            if not good:
                raise ConfigError(key, "is not a URL with a host and a port from 1 to 65535")
            if parts and parts.username is not None:
                raise ConfigError(key, "must not hold a password", "use ray.tokenFile or ray.headersFile")
        return self
