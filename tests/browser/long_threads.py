"""Conversations too long to be had in a test: told to the page as the host would tell them. No tests live here."""

import json
import uuid
from typing import Any

from playwright.sync_api import Page, Route

from browser.people import Visitor

START = "2026-03-16T08:00:00.000Z"
WORDS = "Some words of an answer, **bold** ones too.\n\n- a list\n- of two\n\n`code` and a bit more. "


def turns_of(count: int, start: int = 0, day: int = 16) -> list[dict[str, Any]]:
    """So many turns, each a question and an answer; some answers are long."""
    told: list[dict[str, Any]] = []
    for number in range(start, start + count):
        run = f"00000000-0000-7000-8000-{number:012d}"
        common = {"taskId": run, "timestamp": f"2026-03-{day:02d}T08:00:00.000Z"}
        told.append(
            {**common, "id": f"m-{number}", "itemId": f"{run}.0", "seq": 2 * number + 1, "role": "user"}
            | {"content": f"question {number}", "attachments": []}
        )
        text = f"answer {number}: " + WORDS * (1 + number % 7)
        told.append(
            {**common, "id": f"{run}.1", "seq": 2 * number + 2, "role": "assistant", "content": text}
            | {"ui_schema": None, "agentId": "echo", "name": "Echo"}
        )
    return told


def tell(visitor: Visitor, days: list[list[dict[str, Any]]]) -> str:
    """The page will find a conversation of these days, the oldest first; returns its address."""
    thread = str(uuid.uuid4())
    seen = {"threadId": thread, "title": "long", "archived": False, "closed": False, "items": 0}
    look = seen | {"createdAt": START, "updatedAt": START, "activeAgentId": "echo", "agentsInSession": ["echo"]}
    look |= {
        "speakingAgentId": None,
        "inflight": {},
        "transactions": {},
        "cursor": "999999",
        "inflightCursor": "999999",
    }

    def history(route: Route) -> None:
        before = route.request.url.partition("before=2026-03-")[2][:2]
        place = int(before) - 1 if before else len(days)
        day = {"scope": "history_day", "threadId": thread, "day": f"2026-03-{place:02d}", "hasMore": place > 1}
        answer(route, {**day, "messages": days[place - 1]})

    page = visitor.page
    page.route(f"**/sessions/{thread}", lambda route: answer(route, look))
    page.route(f"**/sessions/{thread}/events*", lambda route: route.abort())
    page.route("**/agent/history?*", history)
    page.route("**/agent/runs?*", lambda route: answer(route, {"runs": [], "next": None}))
    page.route(
        "**/agent/runs/00000000-*/events", lambda route: route.fulfill(body="", content_type="text/event-stream")
    )
    return f"{visitor.url.split('#')[0]}#/t/{thread}"


def answer(route: Route, body: object) -> None:
    route.fulfill(body=json.dumps(body), content_type="application/json")


SCROLL = """async ([steps, step]) => {
  const box = document.querySelector('.scroller');
  const frames = [], drawn = [];
  let empty = 0;
  let last = await new Promise(requestAnimationFrame);
  for (let at = 0; at < steps; at += 1) {
    box.scrollTop += step;
    const now = await new Promise(requestAnimationFrame);
    frames.push(now - last);
    last = now;
    drawn.push(document.querySelectorAll('article.turn').length);
    const { left, top, width, height } = box.getBoundingClientRect();
    const hit = document.elementFromPoint(left + width / 2, top + height / 2);
    if (!hit?.closest('article.turn, .column > *:not(.turns), .place')) empty += 1;
  }
  frames.sort((one, other) => one - other);
  const at = (share) => frames[Math.floor((frames.length - 1) * share)];
  return { median: at(0.5), p95: at(0.95), worst: at(1), most: Math.max(...drawn), empty };
}"""


def scroll(page: Page, steps: int, step: int) -> dict[str, float]:
    """Scroll so many frames, so far in each; how long frames took, how much was drawn, how often nothing was there."""
    return page.evaluate(SCROLL, [steps, step])
