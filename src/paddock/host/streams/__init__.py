"""Following what is committed: tails of live sessions, rings between hosts, and what people hold open.

Nothing passes here that is not in the log; how frames look is a door's business.
"""
