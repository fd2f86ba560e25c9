"""Keeping and deleting: the audit trail, deletion and erasure, retention by age, sweeping of files.

Which rows follow from an erasure is decided in `rules/log/`. No message passes through here on its way.
"""
