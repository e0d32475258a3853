"""The reference post's figures, redrawn from runs of this repository, for whichever runs there are."""
