"""A DigitalOcean Kubernetes cluster with MI325X nodes, which this stack makes and owns.

Written from the pinned SDK, the source of DigitalOcean's Terraform provider and its pages, and run against a stand-in
(tools/rehearsal/digitalocean.py). Never run with a real account: whether the API takes these arguments together, what a
real refresh finds, and how long contracted nodes take are not known.
"""

import os
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

import pulumi

from infra.cluster.access import KubernetesAccess
from infra.one_line import end_with
from serving.cluster import DoksCluster as DoksSettings
from serving.errors import ConfigError
from serving.versions import versions

if TYPE_CHECKING:  # its import takes a second or more, which only stacks on DOKS may pay
    from pulumi_digitalocean import Firewall, KubernetesCluster, KubernetesNodePool, Vpc
    from pulumi_digitalocean.outputs import KubernetesClusterKubeConfig

SYSTEM_POOL = "system"  # DOKS labels nodes with their pool's name; serving/node_profiles.yaml selects this one
GPU_POOL = "mi325x"
TAG = "pd-mi325x"  # on every droplet: `doctl compute droplet list --tag-name pd-mi325x` finds what is paid for
_TOKEN_VARIABLES = ("DIGITALOCEAN_TOKEN", "DIGITALOCEAN_ACCESS_TOKEN")  # read by the provider, in this order
_VERSION_SLUG = r"\d+\.\d+\.\d+-do\.\d+"
# The provider itself waits 30 minutes (Terraform provider, resource_kubernetes_node_pool.go), and forgets a pool that
# was not up by then, while it goes on to be paid for. How long eight-GPU nodes take was not measured.
_GPU_POOL_TIMEOUT = "90m"


class DoksCluster(pulumi.ComponentResource):
    """VPC, cluster with a pool of CPU nodes, firewall in front of the nodes, pool of `nodes` MI325X nodes.

    Raises ConfigError before anything is registered for what can be known beforehand: a missing token, a version DOKS
    does not have.
    """

    access: KubernetesAccess

    def __init__(
        self, name: str, settings: DoksSettings, nodes: int, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        _check_token()
        version = _version(settings)
        super().__init__("pd-mi325x:cluster:Doks", name, {}, opts)
        vpc = self._vpc(name, settings)
        cluster = self._cluster(name, settings, version, vpc)
        firewall = self._firewall(name, settings, cluster)
        pool = self._gpu_pool(name, settings, nodes, cluster, firewall)
        kubeconfig = pulumi.Output.secret(cluster.kube_configs.apply(_kubeconfig))
        owner = pulumi.get_stack()
        self.access = KubernetesAccess(kubeconfig, owner=owner, waits=True, depends_on=[cluster, firewall, pool])
        self.register_outputs({"clusterId": cluster.id, "endpoint": cluster.endpoint})

    def _options(self, **more: object) -> pulumi.ResourceOptions:
        """Delete first when replacing: ranges may not overlap, names are taken, and no contracted node is spare."""
        own = pulumi.ResourceOptions(parent=self, delete_before_replace=True)
        return pulumi.ResourceOptions.merge(own, pulumi.ResourceOptions(**more))  # type: ignore[arg-type]

    def _vpc(self, name: str, settings: DoksSettings) -> "Vpc":
        import pulumi_digitalocean as do

        return do.Vpc(f"{name}-vpc", region=settings.region, ip_range=settings.vpc_ip_range, opts=self._options())

    def _cluster(self, name: str, settings: DoksSettings, version: str, vpc: "Vpc") -> "KubernetesCluster":
        import pulumi_digitalocean as do

        return do.KubernetesCluster(
            name,
            region=settings.region,
            version=version,
            vpc_uuid=vpc.id,
            ha=settings.high_availability,
            node_pool=do.KubernetesClusterNodePoolArgs(
                name=SYSTEM_POOL,
                size=settings.system_node_size,
                node_count=settings.system_nodes,
                auto_scale=False,
                tags=[TAG],
            ),
            auto_upgrade=False,
            surge_upgrade=False,  # a surge needs a spare node, which a contract does not have
            amd_gpu_device_plugin=do.KubernetesClusterAmdGpuDevicePluginArgs(enabled=True),
            amd_gpu_device_metrics_exporter_plugin=do.KubernetesClusterAmdGpuDeviceMetricsExporterPluginArgs(
                enabled=True
            ),
            rdma_shared_device_plugin=do.KubernetesClusterRdmaSharedDevicePluginArgs(enabled=True),
            kubeconfig_expire_seconds=settings.kubeconfig_expire_seconds,
            # Sent when it is off too: left out, the provider keeps what is there (Optional and Computed in its schema).
            control_plane_firewall=do.KubernetesClusterControlPlaneFirewallArgs(
                enabled=bool(settings.allow_api_from), allowed_addresses=settings.allow_api_from
            ),
            tags=[TAG],
            opts=self._options(
                # The newest patch release when the cluster was made. A newer one would otherwise be an upgrade, which
                # recycles the nodes, planned by whatever `pulumi up` comes next.
                ignore_changes=[] if settings.version else ["version"],
            ),
        )

    def _firewall(self, name: str, settings: DoksSettings, cluster: "KubernetesCluster") -> "Firewall":
        """Closes the nodes' public addresses, on which pods with hostNetwork (Ray) listen.

        DOKS has a firewall of its own there: closed but for the ports of Services of type NodePort and LoadBalancer.
        This one, on the tag that DOKS gives all nodes of a cluster, opens less than that one does: firewalls of a
        droplet add up, so it closes the nodes by itself and opens nothing, but takes nothing back either.
        """
        import pulumi_digitalocean as do

        inside = pulumi.Output.all(cluster.cluster_subnet, cluster.service_subnet).apply(
            lambda subnets: sorted({settings.vpc_ip_range, *filter(None, subnets)})
        )
        everywhere = ["0.0.0.0/0", "::/0"]
        # "all" and not 1-65535: what the provider reads back (Terraform provider, firewalls.go).
        ports = {"tcp": "all", "udp": "all", "icmp": None}
        return do.Firewall(
            f"{name}-nodes",
            tags=[pulumi.Output.concat("k8s:", cluster.id)],
            inbound_rules=[
                do.FirewallInboundRuleArgs(protocol=protocol, port_range=port, source_addresses=inside)
                for protocol, port in ports.items()
            ],
            outbound_rules=[
                do.FirewallOutboundRuleArgs(protocol=protocol, port_range=port, destination_addresses=everywhere)
                for protocol, port in ports.items()
            ],
            opts=self._options(),
        )

    def _gpu_pool(
        self, name: str, settings: DoksSettings, nodes: int, cluster: "KubernetesCluster", firewall: "Firewall"
    ) -> "KubernetesNodePool":
        import pulumi_digitalocean as do

        limits = pulumi.CustomTimeouts(create=_GPU_POOL_TIMEOUT, update=_GPU_POOL_TIMEOUT, delete=_GPU_POOL_TIMEOUT)
        return do.KubernetesNodePool(
            f"{name}-{GPU_POOL}",
            cluster_id=cluster.id,
            name=GPU_POOL,
            size=settings.node_size,
            node_count=nodes,
            auto_scale=False,
            gpu_partition_mode="AMD_PARTITION_MODE_SPX_NPS1",  # one partition of 256 GB for each GPU
            tags=[TAG],
            # The firewall first: no node of this pool is ever without it.
            opts=self._options(custom_timeouts=limits, depends_on=[firewall]),
        )


def _kubeconfig(configs: "Sequence[KubernetesClusterKubeConfig]") -> str:
    """The cluster's own. An empty one would be taken for the user's default cluster by whoever reads it later."""
    content = configs[0].raw_config if configs else None
    if not content:
        how = "`pulumi refresh --target '**:KubernetesCluster::**'`, then `pulumi up`"
        end_with(f"DigitalOcean gave no kubeconfig for the cluster; run {how}")
    return content


def _check_token() -> None:
    if any(os.environ.get(name) for name in _TOKEN_VARIABLES):
        return
    if not pulumi.runtime.get_config_env().get("digitalocean:token"):
        problem = "doks needs a DigitalOcean API token"
        fix = "pulumi config set --secret digitalocean:token, or export DIGITALOCEAN_TOKEN"
        raise ConfigError("pd-mi325x:cluster.provider", problem, fix)


def _version(settings: DoksSettings) -> str:
    """The version that is set, else the newest of the pinned Kubernetes minor release (versions.toml).

    DOKS drops old minor releases. A cluster that has one goes on with it (ignore_changes), so that is no error; for a
    new cluster the API refuses what is returned then.
    """
    if settings.version:
        if not re.fullmatch(_VERSION_SLUG, settings.version):
            problem = f"{settings.version!r} is no DOKS version"
            raise ConfigError("pd-mi325x:cluster.version", problem, "list them: doctl kubernetes options versions")
        return settings.version
    minor = ".".join(versions()["kubernetes"]["version"].split(".")[:2])
    offered = _offered_versions()
    fitting = [slug for slug in offered if slug.startswith(f"{minor}.")]
    if not fitting:
        text = f"DOKS has no Kubernetes {minor} any more: a new cluster needs it set, to one of {', '.join(offered)}"
        pulumi.warn(f"pd-mi325x:cluster.version: {text}")
        return minor
    return max(fitting, key=lambda slug: [int(number) for number in re.findall(r"\d+", slug)])


def _offered_versions() -> list[str]:
    import pulumi_digitalocean as do

    try:
        return list(do.get_kubernetes_versions().valid_versions)
    except Exception as error:  # the SDK raises no narrower one for an invoke that failed
        reason = (str(error).splitlines() or ["no reason given"])[-1].strip()
        raise ConfigError("pd-mi325x:cluster", f"DOKS's versions cannot be read: {reason}") from None
