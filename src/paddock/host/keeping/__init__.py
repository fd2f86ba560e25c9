"""Keeping and forgetting: the audit trail, retention, deletion, erasure and the sweeping of bytes."""
