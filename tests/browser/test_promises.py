"""Every promise of Chat and Run view has its stories, and each of them is told at both sizes and in both languages."""

import inspect
from importlib import import_module

import pytest

from browser.wide import LANGUAGES, SIZES, STORIES


@pytest.mark.parametrize("story", sorted({story for told in STORIES.values() for story in told}))
def test_a_story_that_proves_a_promise_is_there_and_goes_through_sizes_and_languages(story: str) -> None:
    module, name = story.split(".")
    told = getattr(import_module(f"browser.{module}"), f"test_{name}")
    assert "reader" in inspect.signature(told).parameters
    assert "fits(" in inspect.getsource(told)


def test_the_sizes_are_a_desktop_and_a_phone_and_the_languages_english_and_chinese() -> None:
    assert {width for width, _ in SIZES.values()} == {1280, 360}
    assert set(LANGUAGES) == {"en-GB", "zh-CN"}
