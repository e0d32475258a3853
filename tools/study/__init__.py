"""Studies of the benchmark's own method on simulated services whose capacity is known: `make study`."""
