"""Code that runs inside engine processes: importable there with Ray and vLLM and nothing else of this repository."""
