"""A stand-in for RIXL's Python module."""
