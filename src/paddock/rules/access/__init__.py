"""Access: grants, the gate's checks, limits, and the reasons given for a refusal."""
