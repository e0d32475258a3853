"""Finds what is installed, builds what is missing. `python3 -m tools.toolchain --help`; targets in the Makefile.

Standard library only and no syntax newer than Python 3.11: it runs before any environment exists.
"""
