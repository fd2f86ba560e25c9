"""One run: its input, its context, what its runner says, and what it leaves open."""
