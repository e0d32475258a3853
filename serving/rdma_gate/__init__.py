"""The RDMA gate's judgement: from the logs of two `ucx_perftest` processes to a verdict. Nothing runs here."""
