"""What is allowed: grants, the gate's checks, limits, and the reasons that are told."""
