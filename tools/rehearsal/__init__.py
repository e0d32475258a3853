"""A Kubernetes cluster without a machine of it: real control plane and KubeRay operator, simulated nodes and pods.

Real: etcd, kube-apiserver, kube-controller-manager, kube-scheduler, the KubeRay operator, every object and its life
cycle. Simulated: nodes and containers (kwok), pod logs and exec (kubelet.py), volumes (volumes.py), Ray in head pods
(ray_dashboard.py). Start with tools.rehearsal.cluster.SimulatedCluster, or `python -m tools.rehearsal shell`.
"""
