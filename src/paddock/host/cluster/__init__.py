"""Several hosts on one store: beats and leases, requests to the owner of a session, and outages of the store.

A host alone passes through here without asking anybody. What a lease means is decided in `rules/cluster/`.
"""
