"""Measures a stack on Kubernetes: a Job beside the service, its log here, its results copied here."""
