"""A simulated OpenAI server for tests and studies: latencies of a documented queueing model, and no model at all."""
