"""A simulated OpenAI server for tests and studies: latencies of a queueing model, and no language model.

What it answers is made up, and a target that describes it says so (stack `simulated-…`, dummy weights). The model is in
`model` (one engine) and `deployment` (replicas, router, transfer of KV); it runs on a virtual clock (`virtual`) and
behind HTTP (`server`).
"""
