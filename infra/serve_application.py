"""The Serve application on a Ray cluster: resource pd:index:ServeApplication."""

import pulumi

from serving.serve_config import serve_config
from serving.stack import Stack
from serving.versions import platform_versions


class ServeApplication(pulumi.CustomResource):
    """Output metricsUrls: the Prometheus endpoints of the cluster's nodes. See infra/provider/serve_application.py."""

    serviceUrl: pulumi.Output[str]  # noqa: N815  names on the wire
    metricsUrls: pulumi.Output[list[str]]  # noqa: N815

    def __init__(
        self,
        name: str,
        stack: Stack,
        *,
        address: pulumi.Input[str],
        service_url: pulumi.Input[str],
        token_file: pulumi.Input[str] | None = None,
        ca_file: str | None = None,
        headers_file: str | None = None,
        head: pulumi.Input[str] | None = None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        config = serve_config(stack)
        inputs = {
            "address": address,
            "serviceUrl": service_url,
            "tokenFile": token_file,
            "caFile": ca_file,
            "headersFile": headers_file,
            "head": head,
            "rayVersion": platform_versions(stack.platform)["ray"],
            "application": config["applications"][0],
            "httpOptions": config["http_options"],
            "readyTimeoutSeconds": stack.ready_timeout_seconds,
            # Outputs the provider fills in.
            "metricsUrls": None,
            "deployments": None,
        }
        super().__init__("pd:index:ServeApplication", name, inputs, opts)
