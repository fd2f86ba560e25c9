"""Host calls: everything a run may ask of the host, behind one gate.

`host_calls.py` is the gate; each other module does the work of one group of calls and takes the grant that allows it.
Clients and their requests never come here.
"""
