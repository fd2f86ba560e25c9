"""The words that hosts and runners share: frozen models, one module per concept. No I/O, no decisions, ever.

Import from the module that holds the concept (`paddock_sdk.protocol.manifest`); this package imports nothing by itself,
so that a program pays only for the words it uses.
"""
