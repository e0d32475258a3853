"""Pictures of what this project writes, from runs that never happened and say so."""
