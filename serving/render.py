"""What a stack would deploy, as YAML."""

from typing import Any, Literal

from serving.engine import budget_differences
from serving.errors import ConfigError
from serving.fabric.combine import DISCOVERED
from serving.fabric_plan import fabric_plan
from serving.ray_cluster import ray_service
from serving.serve_config import serve_config
from serving.stack_files import load_stack
from serving.yaml_text import yaml_text


def rendered(stack: str, format: Literal["serve", "anyscale", "kubernetes"]) -> str:
    """The Serve config of a stack, or the manifest around it, after comments on what it does not say."""
    settings = load_stack(stack)
    config: dict[str, Any] = serve_config(settings)
    if format == "kubernetes":
        if settings.target != "kubernetes":
            raise ConfigError("--format", f"{stack} is not for Kubernetes (target: {settings.target})")
        config = ray_service(settings, stack, settings.namespace or stack)
    if format == "anyscale":
        # An Anyscale service owns its proxies; it takes the applications and a name.
        config = {"name": stack, "applications": config["applications"]}
    comments = [
        f"# unequal budget {argument}: {', '.join(f'{role} {v}' for role, v in values.items())}\n"
        for argument, values in budget_differences(
            settings.topology_, settings.model_, settings.platform_, settings.engine
        ).items()
    ]
    if fabric_plan(settings).inspect:
        comments.append(
            f"# told by the nodes at `pulumi up`, and not here: {', '.join(DISCOVERED)}, supplementalGroups\n"
        )
    return "".join(comments) + yaml_text(config)
