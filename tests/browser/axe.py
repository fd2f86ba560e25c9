"""What keeps people out of a page, as axe finds it. No tests live here."""

from pathlib import Path

from browser.people import Visitor

AXE = Path(__file__).parents[2] / "console/node_modules/axe-core/axe.min.js"


def serious(visitor: Visitor) -> list[str]:
    if not visitor.page.evaluate("'axe' in window"):
        visitor.page.evaluate(AXE.read_text())
    found = visitor.page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    return [
        f"{one['id']}: {one['nodes'][0]['html'][:120]}"
        for one in found["violations"]
        if one["impact"] in ("serious", "critical")
    ]
