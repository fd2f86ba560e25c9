"""Long answers: every part fits, nothing is lost, and cuts fall where a reader would make them."""

import msgspec
from hypothesis import example, given
from hypothesis import strategies as st

from paddock.rules.agents.specs import TextUnit
from paddock.rules.log.payloads import RunEvent
from paddock.rules.platforms.deliveries import DELAYS, after_failure, deliveries_after, split
from paddock.rules.rows.deliveries import PARTS
from paddock.rules.rows.rows import TranscriptRow
from paddock.rules.run.context import RunInput

UNITS = st.sampled_from(["characters", "bytes", "utf16"])


def size(text: str, unit: TextUnit) -> int:
    match unit:
        case "bytes":
            return len(text.encode("utf-8", "surrogatepass"))
        case "utf16":
            return len(text.encode("utf-16-le", "surrogatepass")) // 2
        case _:
            return len(text)


@given(text=st.text(max_size=600), limit=st.integers(4, 80), unit=UNITS)
@example(text="a\u0301" * 50, limit=5, unit="characters")
def test_every_part_fits_and_nothing_but_white_space_is_lost(text: str, limit: int, unit: TextUnit) -> None:
    parts = split(text, limit, unit)
    assert all(size(part, unit) <= limit for part in parts)
    assert "".join("".join(parts).split()) == "".join(text.split())


@given(text=st.text(max_size=600), limit=st.integers(4, 80), unit=UNITS, most=st.integers(1, 9))
def test_with_a_limit_of_parts_the_last_one_has_all_that_is_left(
    text: str, limit: int, unit: TextUnit, most: int
) -> None:
    parts = split(text, limit, unit, most=most)
    assert len(parts) <= most
    assert all(size(part, unit) <= limit for part in parts[: most - 1])
    assert "".join("".join(parts).split()) == "".join(text.split())


def test_of_an_answer_with_more_parts_than_there_are_places_nothing_is_lost() -> None:
    words = " ".join(f"word{number:07}" for number in range(40_000))
    item = TranscriptRow("s", 3, "i", "r", "assistant", "message", "a", words, b"", 1.0, b"{}")
    event = RunEvent(delivery={"surface": "chat", "max_message_size": 100, "platform_capabilities": {"delivers": True}})
    rows = deliveries_after(RunInput("", {}, {}, "platform", 1, 1.0, True, event), [item], "w", 2.0)
    told = [msgspec.json.decode(row.body) for row in rows]
    assert [one["part"] for one in told] == list(range(1, PARTS))
    assert " ".join(one["text"] for one in told) == words


def test_a_text_that_fits_stays_as_it_is() -> None:
    assert split(" one \n", 100) == [" one \n"]
    assert split("x" * 5000, None) == ["x" * 5000]
    assert split("", 100) == [""]


def test_cuts_fall_between_paragraphs_then_lines_then_sentences_then_words() -> None:
    assert split("a very first part\n\nsecond part\nwith a line", 24) == [
        "a very first part",
        "second part\nwith a line",
    ]
    assert split("one two three four", 10) == ["one two", "three four"]
    assert split("今天天气很好。我们去公园吧。", 9) == ["今天天气很好。", "我们去公园吧。"]
    assert split("x" * 25, 10) == ["x" * 10, "x" * 10, "x" * 5]


def test_what_belongs_together_is_not_torn() -> None:
    family = "\U0001f468\u200d\U0001f469\u200d\U0001f467"
    assert split(f"abcdefg{family}", 9) == ["abcdefg", family]
    assert split("cafe\u0301 " * 2, 4)[0] == "caf"


def test_attempts_are_spread_over_hours_and_have_an_end() -> None:
    assert [after_failure(number + 1, 0.0) for number in range(len(DELAYS))] == list(DELAYS)
    assert after_failure(len(DELAYS) + 1, 0.0) is None
    assert after_failure(1, 0.0, gone=True) is None
    assert after_failure(1, 100.0, retry_after=60.0) == 160.0
    assert after_failure(1, 0.0, retry_after=1e9) == 3600.0
