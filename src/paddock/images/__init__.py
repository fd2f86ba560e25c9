"""Pictures of strangers, read where they can do no harm."""
