"""The session machine: which facts and commands follow from a message, and what a fact makes of the state.

A turn here is a run elsewhere. Pure, all of it: ids and times come in with the messages, commands are performed by
`host/session/`.
"""
