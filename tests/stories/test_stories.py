"""Every story is true, and together they name every word of the session."""

from pathlib import Path

import pytest

from paddock.rules.session.facts import VOCABULARY, kind_of
from stories.telling import Teller, WrongStoryError, kinds_in

STORIES = sorted(Path(__file__).parent.glob("*.txt"))
OUR_OWN_SPELLING = {"USER_INPUT:MENTION"}
"""Read on its way in; recorded as USER_INPUT."""


@pytest.mark.parametrize("story", STORIES, ids=lambda path: path.stem)
def test_the_story_is_true(story: Path) -> None:
    teller = Teller(story.name)
    teller.tell(story.read_text())
    assert teller.whens > 0


def test_there_is_a_story_for_every_scenario() -> None:
    assert {story.stem[0].upper() for story in STORIES} >= set("ABCDEFGH")


def test_the_stories_name_every_word_of_the_session() -> None:
    told = {kind for story in STORIES for kind in kinds_in(story.read_text())}
    words = {kind_of(event, subtype) for event, subtypes in VOCABULARY.items() for subtype in subtypes}
    assert words - told - OUR_OWN_SPELLING == set()


@pytest.mark.parametrize(
    ("story", "complaint"),
    [
        ("When user:uma sends USER_INPUT turn=t1", "also said"),
        ("When user:uma sends CONTROL:CANCEL\nThen SYSTEM hears CONTROL:CANCEL", "NO_ACTIVE_SPEAKING"),
        ("When user:uma sends CONTROL:SESSION_CLOSE\nThen nothing is said (already_open)", "session_not_open"),
        ("Now active=ada", "active is nobody"),
        ("Perhaps something happens", "begins with"),
        ("When something happens", "no way to say"),
    ],
)
def test_a_story_that_is_not_true_is_refused(story: str, complaint: str) -> None:
    with pytest.raises(WrongStoryError, match=complaint):
        Teller("a lie").tell(story)
