"""The RDMA gate: the Jobs that run `ucx_perftest` between nodes, and the judgement of what they wrote."""
