"""What tools and agents give back that is no text: pictures to look at, files to take along, for who may see them."""

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Request, Route, expect

from browser.people import Visitor
from browser.wide import Reader, fits

Visit = Callable[..., Visitor]
PAINT = 'call paint {"width": 900, "height": 600}'


def painted(ann: Visitor) -> Locator:
    """The call of a tool that gave back a picture, unfolded."""
    tool = ann.ask(PAINT).locator(".tool", has_text="paint")
    expect(tool.locator(".tool-result")).to_contain_text("pictures: 1 · files: 1 · a house, as you asked")
    tool.locator("summary").click()
    return tool


def test_a_picture_of_a_tool_is_looked_at_in_place_and_large_and_taken_along(visit: Visit) -> None:
    ann = visit(agent="painter", bypass_csp=True)
    asked: list[str] = []
    ann.page.on("request", lambda request: asked.append(request.url) if "/attachments/" in request.url else None)
    turn = ann.ask(PAINT)
    assert asked == []  # nobody has looked at it
    tool = turn.locator(".tool", has_text="paint")
    expect(tool.locator(".tool-result")).to_contain_text("pictures: 1 · files: 1 · a house, as you asked")
    tool.locator("summary").click()
    image = tool.get_by_role("img", name="Picture from paint")
    expect(image).to_be_visible()
    expect(image).to_have_js_property("naturalWidth", 900)
    box = image.bounding_box()
    assert box is not None
    assert (box["height"], round(box["width"] / box["height"], 1)) == (320, 1.5)
    expect(tool).not_to_contain_text("artifact_id")
    expect(tool.locator(".ui-text")).to_have_text("a house, as you asked")
    fits(ann)
    image.click()
    large = ann.page.get_by_role("dialog")
    expect(large).to_contain_text("900 × 600")
    fits(ann)
    with ann.page.expect_download() as taken:
        large.get_by_role("button", name="Download").click()
    assert taken.value.suggested_filename.endswith(".png")
    assert Path(taken.value.path()).read_bytes().startswith(b"\x89PNG")
    ann.page.keyboard.press("Escape")
    expect(large).to_have_count(0)
    expect(tool.locator(".picture-button")).to_be_focused()
    ann.page.keyboard.press("Enter")
    expect(large).to_be_visible()
    ann.page.mouse.click(4, 4)  # beside it
    expect(large).to_have_count(0)
    sound = tool.locator(".file-link").last
    expect(sound).to_contain_text("2 kB")
    with ann.page.expect_download() as taken:
        sound.click()
    assert Path(taken.value.path()).read_bytes().startswith(b"RIFF")
    ann.page.reload()
    again = ann.turns.first.locator(".tool", has_text="paint")
    again.locator("summary").click()
    expect(again.get_by_role("img")).to_be_visible()


def test_the_story_of_a_run_shows_the_pictures_too(visit: Visit) -> None:
    ann = visit(agent="painter", bypass_csp=True)
    ann.ask(PAINT).get_by_role("link", name="How this came about").click()
    for kind in ("Tool", "Artifact"):
        ann.page.get_by_role("button", name=f"{kind} (").click()
        entry = ann.page.locator(".timeline > li", has_text="paint").first
        entry.locator("summary").click()
        expect(entry.get_by_role("img", name="Picture from paint")).to_be_visible()
        fits(ann)


def test_a_result_that_is_too_long_is_taken_along_whole_from_the_story(visit: Visit) -> None:
    ann = visit(agent="painter")
    ann.ask("call recite {}").get_by_role("link", name="How this came about").click()
    ann.page.get_by_role("button", name="Tool (").click()
    ann.page.locator(".timeline > li summary").first.click()
    with ann.page.expect_download() as taken:
        ann.page.get_by_role("button", name="The whole result").click()
    assert Path(taken.value.path()).read_text() == "the raven " * 5_000


def test_a_picture_that_is_not_kept_any_more_is_said_to_be_gone(visit: Visit) -> None:
    ann = visit(agent="painter")
    ann.forgiving = True  # the browser reports the refusals
    ann.page.route(
        "**/api/v1/agent/attachments/**", lambda route: route.fulfill(status=404, json={"code": "not_found"})
    )
    tool = painted(ann)
    expect(tool).to_contain_text("It is not kept any more, or it is not yours to see.")
    tool.locator(".file-link").click()
    expect(tool.get_by_role("alert")).to_contain_text("It is not kept any more")


def test_a_picture_whose_address_is_over_is_asked_for_once_more(visit: Visit) -> None:
    ann = visit(agent="painter")
    ann.forgiving = True
    refused: list[str] = []

    def first_one_is_over(route: Route, request: Request) -> None:
        if refused:
            route.continue_()
        else:
            refused.append(request.url)
            route.fulfill(status=403, json={"code": "unauthorized"})

    ann.page.route("**/content?*", first_one_is_over)
    image = painted(ann).get_by_role("img", name="Picture from paint")
    expect(image).to_have_js_property("naturalWidth", 900)
    assert len(refused) == 1


def test_a_file_that_an_agent_hands_out_is_there_to_be_taken_also_after_a_reload(visit: Visit) -> None:
    ann = visit(agent="asker")
    turn = ann.ask("hand out")
    for _ in range(2):
        with ann.page.expect_download() as taken:
            turn.get_by_role("button", name="notes.txt").click()
        assert Path(taken.value.path()).read_text() == "green it is"
        ann.page.reload()


def test_what_is_unfolded_at_the_end_of_a_conversation_stays_where_it_was_pressed(visit: Visit) -> None:
    """It was pushed out of sight by what came out of it."""
    ann = visit(agent="painter")
    ann.ask("\n".join(f"line {number}" for number in range(60)))
    turn = ann.ask(PAINT)
    summary = turn.locator(".tool summary")
    before = summary.bounding_box()
    summary.click()
    expect(turn.get_by_role("img")).to_be_visible()
    expect(ann.page.get_by_role("button", name="To the newest message")).to_be_visible()
    after = summary.bounding_box()
    assert before is not None
    assert after is not None
    assert abs(before["y"] - after["y"]) < 2
    summary.click()
    expect(ann.page.get_by_role("button", name="To the newest message")).to_have_count(0)


@pytest.mark.long
def test_pictures_and_files(reader: Reader) -> None:
    """In the conversation, large, and in the story, at every size and in every language, by day and by night."""
    arrive, say = reader
    for light in ("light", "dark"):
        ann = arrive(agent="painter", color_scheme=light)
        tool = ann.ask(PAINT).locator(".tool", has_text="paint")
        expect(tool.locator(".tool-result")).to_contain_text(say["chat.pictures"].format(count=1))
        tool.locator("summary").click()
        image = tool.get_by_role("img")
        expect(image).to_have_js_property("naturalWidth", 900)
        fits(ann)
        image.click()
        large = ann.page.get_by_role("dialog")
        expect(large.get_by_role("img")).to_be_visible()
        fits(ann)
        ann.button("app.close", large).click()
        ann.turns.first.get_by_role("link", name=say["chat.run"]).click()
        ann.page.get_by_role("button", name=f"{say['run.kind.tool']} (").click()
        entry = ann.page.locator(".timeline > li").first
        entry.locator("summary").click()
        expect(entry.get_by_role("img")).to_have_js_property("naturalWidth", 900)
        entry.get_by_role("img").scroll_into_view_if_needed()
        fits(ann)


def test_a_picture_that_could_not_be_reached_comes_when_the_host_is_back(visit: Visit) -> None:
    ann = visit(agent="painter")
    ann.forgiving = True
    tool = ann.ask(PAINT).locator(".tool", has_text="paint")
    ann.context.set_offline(True)
    tool.locator("summary").click()
    expect(tool).to_contain_text("The host cannot be reached.")
    ann.context.set_offline(False)
    expect(tool.get_by_role("img", name="Picture from paint")).to_have_js_property("naturalWidth", 900)
