"""What a node's RDMA fabric is, read from /sys and /proc, and what UCX and a pod need to use it."""
