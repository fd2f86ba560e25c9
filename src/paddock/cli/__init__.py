"""The command line."""

import gc
import sys
from importlib import import_module

gc.set_threshold(1_000_000, 50, 50)
"""What is loaded stays: looking for garbage in it took a tenth to a fifth of every start. The host sets its own."""

if "structlog" not in sys.modules and "rich" not in sys.modules:
    # structlog loads rich, and rich a lexer for every language, for tracebacks that we write plainly: four megabytes.
    sys.modules["rich"] = None  # pyright: ignore[reportArgumentType] - how Python is told that there is no such module
    import_module("structlog")
    del sys.modules["rich"]
