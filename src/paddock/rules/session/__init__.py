"""The session machine: what follows from a message, and what a fact makes of the state. Pure, all of it."""
