"""`make campaign`: stacks after each other on the same nodes, each brought up, measured and destroyed, by turns."""
