"""What the repository needs besides itself: toolchain, lock files, stacks, demo, rehearsals.

Standard library only, since it runs in whatever Python there is before `.venv` exists; only `rehearsal` runs in that.
"""
