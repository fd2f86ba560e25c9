"""The floor and the figures: how fast the host is beside the least that could do the same job.

Measuring lives here and nothing the host needs: no module of the host imports this package.
"""
