"""UiSchema 2.0: what an agent hints at, compiled into a document a client can draw.

Pure, and never an exception.

Hints are intents, not layout. The agent's text is complete without the document, so the worst that can happen to a hint
is that it is left out and noted. Nothing here imports another room of rules.
"""

from paddock.rules.ui_schema.compile_budget import CARD, DEFAULT, DocumentLimits
from paddock.rules.ui_schema.compiler import COMPILER, Compiled, compile_hints
from paddock.rules.ui_schema.export import to_a2ui, to_text

__all__ = ["CARD", "COMPILER", "DEFAULT", "Compiled", "DocumentLimits", "compile_hints", "to_a2ui", "to_text"]
