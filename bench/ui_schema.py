"""`python -m bench.ui_schema`: compiling hints into a UiSchema document of 200 nodes, the most one may have.

Nothing in it waits for anything, so its time is the CPU it takes, whoever else uses the machine.
"""

import argparse
import statistics
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bench.verdicts import Line, shown
from paddock.rules.ui_schema.compiler import compile_hints

TARGET_MS = 2.0
NODES = 200
SENTENCE = "Left the house this morning; 明天到, with you <tomorrow>."
SECTION: list[Mapping[str, Any]] = [
    {"type": "text", "content": "An order", "role": "title"},
    {"type": "badge", "label": "sent", "status": "success"},
    {"type": "text", "content": SENTENCE},
    {"type": "kv", "items": [{"label": "parcel", "value": "one of two"}, {"label": "weight", "value": "3 kg"}]},
    {"type": "link", "href": "https://parcels.example/track?number=1", "label": "Track it"},
    {"type": "steps", "items": [{"label": "packed", "state": "done"}, {"label": "sent", "state": "active"}]},
    {"type": "table", "columns": ["what", "how many"], "rows": [["tea", "2"], ["cups", "4"]]},
    {"type": "progress", "value": 60, "label": "on its way"},
    {"type": "divider"},
]
"""Nine nodes; with the stack around them ten."""


def count(node: object) -> int:
    """How many nodes a document has."""
    if isinstance(node, dict):
        return ("key" in node) + sum(map(count, node.values()))
    return sum(map(count, node)) if isinstance(node, list) else 0


def document() -> tuple[list[Mapping[str, Any]], int]:
    """Hints whose document has as many nodes as there may be, and how many that are."""
    sections: list[Mapping[str, Any]] = [
        {"type": "stack", "appearance": "card", "children": SECTION} for _ in range(NODES // (len(SECTION) + 1))
    ]
    compiled = compile_hints(sections)
    return sections, count(compiled.document)


def run(*, quick: bool, directory: Path | None = None) -> None:  # noqa: ARG001 - every part is asked alike
    given, nodes = document()
    times = []
    for _ in range(50 if quick else 300):
        begun = time.thread_time()
        compile_hints(given)
        times.append((time.thread_time() - begun) * 1000)
    p50 = statistics.median(times)
    print(
        shown(
            [
                Line(
                    f"UiSchema, hints to a document of {nodes} nodes, p50",
                    f"{p50:.2f} ms",
                    f"< {TARGET_MS:g} ms",
                    p50 < TARGET_MS,
                )
            ]
        )
    )


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.ui_schema", description=__doc__)
    parser.add_argument("--quick", action="store_true")
    run(quick=parser.parse_args().quick)
    return 0


if __name__ == "__main__":
    sys.exit(main())
