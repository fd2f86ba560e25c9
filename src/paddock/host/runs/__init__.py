"""One live run: what it may do, where it works, its results in order, and its end.

A session's loop starts and cancels runs here; results go back to it. What a run asks of the host is in `calls/`.
"""
