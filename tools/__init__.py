"""What the repository needs before it can run: toolchain, lock files, stacks. Standard library only."""
