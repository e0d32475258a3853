"""Entry point of the plugin; the engine passes its own address as the first argument that is no flag."""

import sys

from infra.provider.cluster_preflight import ClusterPreflight
from infra.provider.fabric_facts import FabricFacts
from infra.provider.kept_objects import KeptObjects
from infra.provider.local_ray_cluster import LocalRayCluster
from infra.provider.ray_service_ready import RayServiceReady
from infra.provider.rdma_gate import RdmaGate
from infra.provider.serve_application import ServeApplication
from infra.provider.server import serve

if __name__ == "__main__":
    engine = next((argument for argument in sys.argv[1:] if not argument.startswith("-")), "")
    resources = {
        "pd:index:LocalRayCluster": LocalRayCluster(),
        "pd:index:ServeApplication": ServeApplication(),
        "pd:index:ClusterPreflight": ClusterPreflight(),
        "pd:index:KeptObjects": KeptObjects(),
        "pd:index:FabricFacts": FabricFacts(),
        "pd:index:RdmaGate": RdmaGate(),
        "pd:index:RayServiceReady": RayServiceReady(),
    }
    serve(resources, engine)
