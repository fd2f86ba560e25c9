"""The other pages, as people use them: the story of a run, agents, operation; keys, small screens, both languages."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Route, expect

from browser.axe import serious
from browser.people import Visitor
from paddock.http_api.admin.console import ASSETS
from walk.hosts import HostProcess

Visit = Callable[..., Visitor]
FIRST_PAGE_BYTES = 250_000


def story_of(ann: Visitor, turn: int = 0) -> None:
    ann.turns.nth(turn).get_by_role("link", name="How this came about").click()
    expect(ann.page.get_by_role("heading", name="What happened")).to_be_visible()


def test_the_story_of_a_run_has_its_grant_its_calls_and_why_they_were_allowed(visit: Visit) -> None:
    ann = visit(agent="helper")
    ann.ask('call calculate {"expression": "2 + 3"}')
    story_of(ann)
    ann.sees("plugin:paddock/local-agent/default")
    allowed = ann.page.locator(".panel", has=ann.page.get_by_role("heading", name="What it was allowed"))
    expect(allowed).to_contain_text("calculate")
    ann.page.get_by_role("button", name=re.compile("^Tool \\(")).click()
    tool = ann.page.locator(".timeline > li").first
    tool.locator("summary").click()
    expect(tool.locator(".json")).to_contain_text("2 + 3")
    ann.page.get_by_role("button", name=re.compile("^Decision \\(")).click()
    call = ann.page.locator(".timeline > li", has_text="tools.call").first
    call.locator("summary").click()
    expect(call.locator(".json")).to_contain_text("reason")
    call.get_by_role("button", name="Why?").click()
    expect(call.locator(".why")).to_contain_text("calculate")
    ann.page.get_by_role("button", name="Show raw events").click()
    ann.sees('"type":"RUN_FINISHED"')


@pytest.mark.parametrize(
    "streamed", [True, pytest.param(False, marks=pytest.mark.long)], ids=["by-its-stream", "without-a-stream"]
)
def test_the_story_of_a_run_goes_on_while_it_runs_and_stays_as_it_was_unfolded(visit: Visit, streamed: bool) -> None:
    ann = visit(agent="slow")
    ann.forgiving = not streamed
    ann.write("count 5000 0.02")
    expect(ann.turns.first.locator(".markdown")).to_contain_text("3 ")
    run = ann.turns.first.get_attribute("data-turn")
    if not streamed:
        ann.page.route(re.compile("/agent/runs/[^/]+/events$"), lambda route: route.abort())
    with ann.page.expect_request(re.compile("/agent/runs/[^/]+/events$")):
        ann.page.goto(f"{ann.page.url.split('#')[0]}#/run/{run}")
    ann.page.get_by_role("button", name=re.compile("^Event \\(")).click()
    first = ann.page.locator(".timeline > li").first
    first.locator("summary").click()
    ann.page.get_by_role("button", name="Stop").click()
    expect(ann.page.locator(".page-head")).to_contain_text("cancelled")
    expect(ann.page.locator(".timeline > li", has_text="CANCEL").first).to_be_visible()
    expect(first.locator(".json").first).to_be_visible()


@pytest.mark.long
def test_two_runs_are_compared(visit: Visit) -> None:
    ann = visit(agent="helper")
    ann.ask("hello")
    ann.ask("@echo hello")
    story_of(ann)
    ann.page.get_by_label("Compare with").select_option(index=1)
    expect(ann.page.locator(".compare tr.differs", has_text="Agent")).to_contain_text("echo")


def test_an_agent_is_made_by_a_form_from_its_runners_schema_and_shows_what_it_would_get(visit: Visit) -> None:
    ann = visit()
    ann.page.get_by_role("link", name="Agents").click()
    ann.page.get_by_role("link", name="New agent").click()
    ann.page.get_by_label("Name").fill("tutor")
    ann.page.get_by_label("Label").fill("Tutor")
    ann.page.get_by_label("Runner").select_option("plugin:paddock/local-agent/default")
    ann.page.locator("[data-field=max_iterations] input").fill("3")
    ann.page.get_by_role("combobox", name="Tools").select_option("none")
    ann.page.get_by_role("button", name="Save").click()
    effective = ann.page.locator(".panel", has=ann.page.get_by_role("heading", name="What it would get"))
    expect(effective).to_contain_text("models.invoke")
    expect(effective.locator("div", has_text=re.compile("^Tools")).first).to_contain_text("nothing")
    expect(effective).to_contain_text("It answers message.received.")
    effective.get_by_label("For this event").fill("group.member_joined")
    expect(effective).to_contain_text("It does not answer group.member_joined")
    effective.get_by_text("What its program would be told").click()
    expect(effective).to_contain_text('"type": "group.member_joined"')
    ann.page.get_by_role("button", name="Delete").click()
    ann.page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(ann.page.get_by_role("heading", name="Runners")).to_be_visible()
    expect(ann.page.get_by_role("heading", name="Tutor")).to_have_count(0)


def test_a_newcomer_is_told_where_the_first_agent_comes_from_and_what_runners_do_in_their_language(
    visit: Visit, browser: Browser, tmp_path: Path
) -> None:
    assert browser.is_connected()
    host = HostProcess(tmp_path / "data").start()
    for locale, built_in, runner in (
        ("en-GB", "no agents file is set", "Calls tools, remembers"),
        ("zh-CN", "没有设置智能体文件", "调用工具、记住要点"),
    ):
        ann = visit(f"{host.url}/#/agents", locale=locale)
        expect(ann.page.locator(".tile h3").first).to_have_text("助手" if locale == "zh-CN" else "Assistant")
        expect(ann.page.locator(".tile", has_text=runner).first).to_be_visible()
        ann.page.goto(f"{host.url}/#/agents/assistant")
        expect(ann.page.locator("form .notice")).to_contain_text(built_in)
        expect(ann.page.locator("form .notice")).to_contain_text("paddock serve --agents agents.yaml")
        expect(ann.page.locator("form .notice a")).to_have_attribute("href", "#/agents/+")
    assert host.stop() == 0


def test_what_cannot_be_saved_is_said(visit: Visit) -> None:
    ann = visit()
    ann.forgiving = True  # a refusal is an error of the network for the browser
    ann.page.goto(ann.page.url.split("#")[0] + "#/agents/+")
    ann.page.get_by_label("Name").fill("echo")
    ann.page.get_by_role("button", name="Save").click()
    expect(ann.page.get_by_role("alert")).to_contain_text("echo")


def test_the_form_of_an_agent_keeps_what_is_written_and_says_saved_only_when_it_is(
    visit: Visit, host: HostProcess
) -> None:
    with host.client() as client:
        client.delete("/api/v1/agents/kept")
        echo = {"runner": "plugin:paddock/echo/default"}
        assert client.put("/api/v1/agents/taken", json=echo).status_code in (200, 201)
        offered = client.get("/api/v1/resources").json()
    ann = visit()
    ann.forgiving = True  # a refusal is an error of the network for the browser
    page, top = ann.page, ann.page.url.split("#")[0]
    page.goto(f"{top}#/agents/+")
    form = page.locator("form.panel")
    runner = form.locator("select").first
    expect(runner).to_have_value("plugin:paddock/local-agent/default")

    # All models and tools of the host can be chosen, not only those some agent has.
    model = form.locator("[data-field=model] select")
    expect(model.locator("option").first).to_have_text("The default model (demo)")
    llms = [one["modelId"] for one in offered["models"] if one["type"] == "llm"]
    assert model.locator("option").all_inner_texts()[1:] == llms
    assert "real" in llms
    form.get_by_role("group", name="Tools").get_by_role("combobox").select_option("these")
    boxes = form.get_by_role("group", name="Tools").locator(".choice")
    expect(boxes).to_have_count(len(offered["tools"]))
    form.get_by_role("checkbox", name="calendar_write").check()

    # A name that is taken is refused, the agent that has it stays as it is, and nothing that was written is lost.
    form.get_by_label("Name").fill("taken")
    form.get_by_label("Instructions").fill("Be kind.")
    model.select_option("real")
    form.get_by_role("button", name="Save").click()
    expect(page.get_by_role("alert")).to_contain_text("Not saved.")
    expect(page.get_by_role("alert")).to_contain_text("there is an agent 'taken' already")
    expect(form.get_by_label("Instructions")).to_have_value("Be kind.")
    expect(page.get_by_text("Saved", exact=True)).to_have_count(0)

    # Another runner and back, another page and back: it is all still there.
    runner.select_option("plugin:paddock/echo/default")
    expect(page.get_by_role("alert")).to_have_count(0)
    runner.select_option("plugin:paddock/local-agent/default")
    expect(model).to_have_value("real")
    page.get_by_role("link", name="Operate").first.click()
    expect(page.get_by_role("heading", name="Operate")).to_be_visible()
    page.goto(f"{top}#/agents/+")
    expect(form.get_by_label("Instructions")).to_have_value("Be kind.")
    expect(page.get_by_text("This agent is not saved yet.")).to_be_visible()
    expect(form.get_by_role("checkbox", name="calendar_write")).to_be_checked()

    form.get_by_label("Name").fill("kept")
    form.get_by_role("button", name="Save").click()
    expect(page.get_by_text("Saved", exact=True)).to_be_visible()
    expect(page).to_have_url(f"{top}#/agents/kept")
    expect(form.get_by_label("Instructions")).to_have_value("Be kind.")
    expect(page.get_by_text("not saved yet")).to_have_count(0)

    # With the next letter it is not saved any more; while the host is away neither, and it is there when it is back.
    form.get_by_label("Instructions").fill("Be kind and brief.")
    expect(page.get_by_text("Saved", exact=True)).to_have_count(0)
    expect(page.get_by_text("What you changed here is not saved yet.")).to_be_visible()
    page.route("**/api/v1/agents/kept", lambda route: route.abort())
    form.get_by_role("button", name="Save").click()
    expect(page.get_by_role("alert")).to_contain_text("Not saved.")
    page.unroute("**/api/v1/agents/kept")
    form.get_by_role("button", name="Save").click()
    expect(page.get_by_text("Saved", exact=True)).to_be_visible()
    with host.client() as client:
        kept = client.get("/api/v1/agents/kept").json()["definition"]
        assert (kept["instructions"], kept["config"], kept["tools"]) == (
            "Be kind and brief.",
            {"model": "real"},
            {"calendar_write": None},
        )
        assert client.get("/api/v1/agents/taken").json()["runnerId"] == "plugin:paddock/echo/default"

    # Half a JSON is not saved in silence as what was there before, and it is kept like everything else.
    arguments = form.locator("[data-field=extra_args] textarea")
    arguments.fill('{"temperature": ')
    form.get_by_role("button", name="Save").click()
    expect(page.get_by_text("What you changed here is not saved yet.")).to_be_visible()
    expect(page.get_by_text("Saved", exact=True)).to_have_count(0)
    page.goto(f"{top}#/agents")
    expect(page.get_by_role("heading", name="Runners")).to_be_visible()
    page.goto(f"{top}#/agents/kept")
    expect(arguments).to_have_value('{"temperature": ')

    # What was written and is not wanted goes at a word.
    form.get_by_label("Instructions").fill("Shout.")
    page.get_by_role("button", name="Discard").click()
    expect(form.get_by_label("Instructions")).to_have_value("Be kind and brief.")
    expect(arguments).to_have_value("{}")

    # An agent whose runner is not here says so, and is not shown with another one.
    def elsewhere(route: Route) -> None:
        moved = {**kept, "runner": "plugin:no/such/one"}
        route.fulfill(json={**route.fetch().json(), "runnerId": "plugin:no/such/one", "definition": moved})

    page.route("**/api/v1/agents/kept", elsewhere)
    page.reload()
    expect(runner).to_have_value("plugin:no/such/one")
    expect(runner.locator("option:checked")).to_have_text("plugin:no/such/one · not here at the moment")


def test_what_is_typed_into_the_forms_of_operate_stays_while_somebody_looks_elsewhere(visit: Visit) -> None:
    ann = visit()
    page, top = ann.page, ann.page.url.split("#")[0]
    page.goto(f"{top}#/operate/automations")
    page.get_by_text("New automation").click()
    page.get_by_label("Name").fill("half a job")
    page.goto(f"{top}#/operate/knowledge")
    page.get_by_label("Name").fill("half-a-base")
    page.goto(f"{top}#/operate/keys")
    page.get_by_role("textbox", name="User").fill("half a user")
    page.goto(f"{top}#/operate/usage")
    page.get_by_role("button", name="Last 7 days").click()
    page.goto(f"{top}#/agents")
    expect(page.get_by_role("heading", name="Agents")).to_be_visible()
    page.goto(f"{top}#/operate/automations")
    expect(page.get_by_label("Name")).to_have_value("half a job")
    page.goto(f"{top}#/operate/knowledge")
    expect(page.get_by_label("Name").first).to_have_value("half-a-base")
    page.goto(f"{top}#/operate/keys")
    expect(page.get_by_role("textbox", name="User")).to_have_value("half a user")
    page.goto(f"{top}#/operate/usage")
    expect(page.get_by_role("button", name="Last 7 days")).to_have_attribute("aria-pressed", "true")


def test_the_user_of_a_new_key_is_typed_once_it_is_known_whether_dev_makes_the_first(visit: Visit) -> None:
    ann = visit()
    asked: list[Route] = []
    ann.page.route("**/api/v1/api-keys", lambda route: asked.append(route))  # noqa: PLW0108 - a list's own method cannot be marked, as Playwright does
    ann.page.goto(ann.page.url.split("#")[0] + "#/operate/keys")
    user = ann.page.get_by_role("textbox", name="User")
    expect(user).to_be_disabled()
    asked[0].continue_()
    ann.page.unroute("**/api/v1/api-keys")
    expect(user).to_be_enabled()
    expect(user).to_have_value("dev")


HOSTILE = (
    "<script>window.hacked=1</script><img src=x onerror='window.hacked=1'>"
    "[click](javascript:window.hacked=1) ![p](https://evil.example/leak.png) "
    "<iframe src='https://evil.example'></iframe> [mail](data:text/html,<script>1</script>) "
    "<style>*{display:none}</style> [a](https://user:pass@evil.example/)"
)


def test_a_hostile_agent_reaches_nothing(visit: Visit) -> None:
    ann = visit()
    turn = ann.ask(f"@echo {HOSTILE}")
    for _ in range(2):
        expect(turn.locator(".markdown")).to_be_visible()
        assert turn.locator(".markdown :is(script, img, iframe, style, a[href])").count() == 0
        assert ann.page.evaluate("window.hacked") is None
        ann.page.reload()
        turn = ann.turns.first
    assert ann.complaints == []


def test_a_misleading_link_shows_its_host(visit: Visit) -> None:
    ann = visit()
    turn = ann.ask("@echo [https://bank.example/?evil.example](https://evil.example/x) https://\u0430pple.example")
    links = turn.locator(".markdown a[href]")
    expect(links.first).to_have_text("https://bank.example/?evil.example(evil.example)")
    expect(links.last).to_contain_text("(xn--pple-43d.example)")
    expect(links.first).to_have_attribute("rel", "noopener noreferrer nofollow")


def test_a_key_is_asked_for_survives_a_reload_and_is_nowhere_to_be_found(
    visit: Visit, locked: tuple[HostProcess, str]
) -> None:
    host, key = locked
    ann = visit(host.url)
    ann.forgiving = True  # the browser reports each 401
    box = ann.page.get_by_label("API key")
    box.fill("pdk_wrong")
    box.press("Enter")
    expect(ann.page.get_by_role("alert")).to_contain_text("not known")
    box.fill(key)
    box.press("Enter")
    ann.page.get_by_role("button", name="hello").click()
    expect(ann.turns.first.locator(".markdown")).to_contain_text("demo model")
    ann.page.reload()
    expect(ann.turns.first.locator(".markdown")).to_contain_text("demo model")
    assert key not in ann.page.url
    assert key not in ann.page.content()
    assert ann.context.cookies() == []
    assert ann.page.evaluate("JSON.stringify(localStorage)").find(key) < 0
    other = ann.context.new_page()
    other.goto(host.url)
    expect(other.get_by_label("API key")).to_be_visible()


FEW = ("agents/helper", "operate/usage")
MANY = ("agents", "operate/live", "operate/audit", "operate/keys", *FEW)


@pytest.mark.parametrize(("colours", "places"), [("light", FEW), pytest.param("dark", MANY, marks=pytest.mark.long)])
def test_no_page_has_a_serious_obstacle_for_anybody(visit: Visit, colours: str, places: tuple[str, ...]) -> None:
    ann = visit(agent="helper", color_scheme=colours, bypass_csp=True)
    ann.ask('call calculate {"expression": "2 + 3"}')
    ann.ask("@echo **b** [l](https://example.org)\n\n```py\n1\n```\n\n| a |\n|---|\n| 1 |")
    assert serious(ann) == []
    story_of(ann)
    assert serious(ann) == []
    for place in places:
        ann.page.goto(ann.page.url.split("#")[0] + f"#/{place}")
        expect(ann.page.locator(".tile, .panel").first).to_be_visible()
        assert serious(ann) == []


@pytest.mark.parametrize("locale", ["en-GB", "zh-CN"])
def test_the_chat_is_whole_at_360_pixels_in_both_languages(visit: Visit, locale: str) -> None:
    ann = visit(width=360, height=740, locale=locale)
    chinese = locale == "zh-CN"
    ann.page.get_by_role("button", name="你好" if chinese else "hello").click()
    expect(ann.turns.first.locator(".turn-footer")).to_have_count(1)
    wide = "document.documentElement.scrollWidth > document.documentElement.clientWidth"
    assert ann.page.evaluate(wide) is False
    ann.page.get_by_role("button", name="菜单" if chinese else "Menu").click()
    ann.page.get_by_role("link", name="运维" if chinese else "Operate").click()
    expect(ann.page.locator(".panel").first).to_be_visible()
    assert ann.page.evaluate(wide) is False
    assert ann.page.locator("html").get_attribute("lang") == ("zh-Hans" if chinese else "en")


def test_what_the_host_decided_and_refused_is_told_in_chinese_to_who_reads_it(visit: Visit) -> None:
    ann = visit(locale="zh-CN")
    ann.forgiving = True  # a refusal is an error of the network for the browser
    turn = ann.ask('call calculate {"expression": "2 + 3"}')
    top = ann.page.url.split("#")[0]
    ann.page.goto(f"{top}#/run/{turn.get_attribute('data-turn')}")
    call = ann.page.locator(".entry", has_text="tools.call").first
    call.locator("summary").first.click()
    call.get_by_role("button", name="为什么").click()
    expect(call.locator(".why")).to_contain_text("“calculate”是它可用的工具之一。")
    expect(call.locator(".why")).to_contain_text("此次运行已结束（完成）")
    ann.page.goto(f"{top}#/operate/audit")
    row = ann.page.locator(".listing tr", has_text="tools.call").first
    expect(row.locator(".reason")).to_have_text("在此次运行的授权之内")
    ann.page.goto(f"{top}#/agents/+")
    ann.page.get_by_role("main").get_by_label("名称").first.fill("echo")
    ann.page.get_by_role("button", name="保存").click()
    expect(ann.page.get_by_role("alert")).to_contain_text("与当前状态冲突")


def test_everything_can_be_done_by_keyboard(visit: Visit) -> None:
    ann = visit()
    expect(ann.page.get_by_label("Message", exact=True)).to_be_focused()
    ann.page.keyboard.type("@ec")
    expect(ann.page.get_by_role("option", name="@echo")).to_be_visible()
    ann.page.keyboard.press("Tab")
    ann.page.keyboard.type("by keyboard")
    ann.page.keyboard.press("Enter")
    expect(ann.turns.first.locator(".markdown")).to_contain_text("by keyboard")
    expect(ann.page.get_by_label("Message", exact=True)).to_be_focused()


def test_the_first_page_is_small_and_quick(visit: Visit) -> None:
    ann = visit()
    expect(ann.page.locator(".hello")).to_be_visible()
    files = re.findall(r'(?:src|href)="\./(assets/[^"]+)"', (ASSETS / "index.html").read_text())
    packed = sum(
        int(ann.page.request.get(f"{ann.url.split('#')[0].rstrip('/')}/{name}").headers["content-length"])
        for name in files
    )
    assert packed < FIRST_PAGE_BYTES
    paint = ann.first_paint()
    assert paint < 10_000  # a loaded machine; the figure of a quiet one is in docs/results.md
