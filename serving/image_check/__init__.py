"""Whether an engine image holds what versions.toml names: run at the end of its build, with the image's own Python."""
