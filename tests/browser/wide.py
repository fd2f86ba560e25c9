"""The wide set: what the console promises of Chat and Run view, each as a story at both sizes and in both languages.

`STORIES` names for every promise the stories that prove it; `test_promises.py` sees to it that they are there and go
through all four combinations. Each story looks at `fits` on its way: nothing is wider than the page, axe has nothing
serious to say, and a picture is kept for somebody to look at when CONSOLE_PICTURES names a place. No tests live here.
"""

import os
from collections.abc import Callable, Mapping
from pathlib import Path

from browser.axe import serious
from browser.people import Visitor

Reader = tuple[Callable[..., Visitor], Mapping[str, str]]
"""Somebody of one size and language: how they arrive, and the words of their page."""
SIZES = {"desktop": (1280, 800), "phone": (360, 740)}
LANGUAGES = ("en-GB", "zh-CN")
WIDE = "document.documentElement.scrollWidth > document.documentElement.clientWidth"

STORIES = {
    "Chat: threads list with search": ("test_wide.the_chat_from_the_first_visit_on", "test_wide_chat.a_hit_is_opened"),
    "Chat: rename, archive and export": ("test_wide.what_people_do_with_answers_agents_and_conversations",),
    "Chat: edit and regenerate": (
        "test_wide.the_chat_from_the_first_visit_on",
        "test_wide.what_people_do_with_answers_agents_and_conversations",
    ),
    "Chat: feedback": ("test_wide_chat.words_come_in_pieces",),
    "Chat: streaming Markdown with code": ("test_wide_chat.words_come_in_pieces",),
    "Chat: who speaks, mention with completion, invite, remove, switch": (
        "test_wide.the_chat_from_the_first_visit_on",
        "test_wide.what_people_do_with_answers_agents_and_conversations",
    ),
    "Chat: handover dialog": ("test_wide_chat.a_handover_is_refused",),
    "Chat: stop, retry": ("test_wide_chat.an_answer_is_stopped",),
    "Chat: attachments by drop and paste with previews": ("test_wide_chat.pictures_come_by_paste_and_drop",),
    "Chat: UiSchema cards": ("test_wide_asked.cards_are_used",),
    "Chat: approvals and questions of front-end tools answered in place": (
        "test_wide_asked.a_call_waits_for_a_yes",
        "test_wide_asked.several_questions",
        "test_wide_asked.a_permission",
        "test_wide_asked.a_tool_of_the_page",
    ),
    "Chat: failed and interrupted runs": (
        "test_wide.what_goes_wrong_and_what_is_asked",
        "test_wide_trouble.the_host_dies",
    ),
    "Chat: pictures and files of tools": ("test_files.pictures_and_files",),
    "Chat: half an answer": ("test_unfinished.an_unfinished_answer",),
    "Chat: history by day, upwards": ("test_wide_chat.earlier_days_come_above",),
    "Chat: reload and network loss": (
        "test_wide_trouble.a_reload_in_the_middle",
        "test_wide_trouble.the_network_goes_away",
        "test_wide_trouble.a_message_could_not_be_sent",
    ),
    "Chat: an answer within one click": ("test_wide.the_chat_from_the_first_visit_on",),
    "Slow network": ("test_wide_trouble.a_slow_network",),
    "Two browsers on one thread": ("test_wide_trouble.two_browsers",),
    "A hostile agent": ("test_wide_trouble.a_hostile_agent",),
    "Run view: context, grant, calls with their decisions, tools, tokens, cost": ("test_wide_runs.a_run_tells",),
    "Run view: artifacts, state changes, process events, raw events": ("test_wide_runs.what_a_run_left",),
    "Run view: live while it runs": ("test_wide_runs.a_run_is_watched",),
    "Run view: linked from every message": ("test_wide_runs.a_run_tells", "test_wide_runs.two_runs_are_compared"),
    "Run view: compare two runs": ("test_wide_runs.two_runs_are_compared",),
    "Every other page": ("test_wide.the_story_of_a_run_and_every_other_page",),
}


def fits(ann: Visitor) -> None:
    """Nothing is wider than the page, and nobody is kept out."""
    keep(ann)
    assert ann.page.evaluate(WIDE) is False
    found = serious(ann)
    assert found == [], found


def keep(ann: Visitor) -> None:
    """A picture for somebody to look at, when a place for pictures is set."""
    if place := os.environ.get("CONSOLE_PICTURES"):
        Path(place).mkdir(parents=True, exist_ok=True)
        story = os.environ.get("PYTEST_CURRENT_TEST", "").partition("::test_")[2].partition(" ")[0]
        ann.page.screenshot(path=Path(place) / f"{len(list(Path(place).iterdir())):03d}-{story}.png")
