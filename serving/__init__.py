"""What is served and how: models, topologies, platforms, Serve configs. Values in, dicts out: no Pulumi, no network."""
