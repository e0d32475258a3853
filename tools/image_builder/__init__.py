"""Builds the images without a Docker daemon and without a registry: BuildKit as a process, base images made here."""
