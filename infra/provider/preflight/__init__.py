"""What a cluster lacks for a stack: each check is a pure function, (inputs, facts) -> lines; facts.py reads the API.

Inputs are those of infra/provider/cluster_preflight.py. A line says what is lacking, where, and what to do.
"""
