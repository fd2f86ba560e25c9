"""Runners, wherever they run: `gateway` chooses one, `processes/` and `attached_runners` are where they come from.

What a run may do is decided by the host; here its frames are carried, in order and within limits.
"""
