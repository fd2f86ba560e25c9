"""Chat platforms: how questions and long answers are put to them, and when a delivery is tried again.

Requests are signed by `access/signatures.py` and sent by `host/platforms/`.
"""
