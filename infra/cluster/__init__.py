"""Where the nodes come from."""
