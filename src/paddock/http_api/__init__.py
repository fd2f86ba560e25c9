"""The HTTP doors. A handler reads the request, calls one thing of the host and answers; nothing is decided here.

`edge/` is what every request needs: who calls, what was sent, how it is refused, and how an operation is declared
(`operations.py`, `shapes.py`). `native/` and `admin/` are groups of operations, `ag_ui/` and `mcp/` doors that speak
another protocol, `streams/` what is followed, `description/` the document made of all declarations. A request comes in
by `edge/app.py` and leaves as what its handler returns.
"""
