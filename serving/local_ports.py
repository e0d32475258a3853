"""Which loopback port of a local Ray head does what."""


class LocalPorts:
    """Which loopback port does what, counted from cluster.portBase."""

    def __init__(self, base: int) -> None:
        self.http, self.dashboard, self.metrics, self.gcs = base, base + 1, base + 2, base + 3
        self.node_manager, self.object_manager = base + 4, base + 5
        self.dashboard_agent, self.runtime_env_agent, self.dashboard_grpc = base + 6, base + 7, base + 8
        self.ray_client = base + 9
        # Metrics of Ray's autoscaler and dashboard, which else meet on fixed ports with those of another head.
        self.autoscaler_metrics, self.dashboard_metrics = base + 10, base + 11
        self.side_channel = base + 100  # 100 ports for prefill or aggregated replicas, then 100 for decode
        self.first_worker, self.last_worker = base + 300, base + 399  # Ray's own worker processes

    def listeners(self) -> dict[str, int]:
        """The ports that Ray itself listens on, which must be free before it starts: name -> port."""
        ranges = ("side_channel", "first_worker", "last_worker")
        return {name: port for name, port in vars(self).items() if name not in ranges}
