"""A stand-in for Triton."""

from importlib.metadata import version

__version__ = version("triton")
