"""Drives load against a served model, collects evidence, judges it and reports.

Knows a URL, a scenario and metrics endpoints; knows neither Pulumi nor Kubernetes nor how the service was deployed.
"""
