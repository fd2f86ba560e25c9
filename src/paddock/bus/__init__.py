"""How hosts wake each other: inside one process, or through NATS."""
