"""Programs, paths and addresses in an agent's settings: whoever runs the host names them, unless they were opened."""

from importlib import import_module
from typing import Any

import pytest
from pydantic import ValidationError

from host.scripted import manifest_of
from paddock.rules.access.host_only import NOTHING_OPENED, ApiAgents, is_host_only, marked, refused_over_api
from paddock_sdk.protocol.frames import PluginInfo
from paddock_sdk.protocol.manifest import AgentRunnerManifest, DynamicFormItemSchema

RUNNER = "plugin:test/one/default"
FILE = "write this agent in the agents file (agents.yaml)"


def a_runner(*form: dict[str, Any], host_only: bool = False) -> AgentRunnerManifest:
    fields = [{"type": "string", **field} for field in form]
    raw = manifest_of(RUNNER, {}).model_dump() | {"config_schema": fields, "host_only": host_only}
    return AgentRunnerManifest.model_validate(raw)


def refused(runner: AgentRunnerManifest, opened: ApiAgents = NOTHING_OPENED, **config: Any) -> list[str]:
    return refused_over_api(runner, config, (), opened)


def opened(*urls: str) -> ApiAgents:
    return ApiAgents(urls=list(urls))


def test_a_marked_setting_is_refused_with_the_file_to_write_it_in() -> None:
    [said] = refused(a_runner({"name": "launcher", "host_only": True}), launcher="sh")
    assert said.startswith("config.launcher names a program or a path of the host's machine: " + FILE)
    [said] = refused(a_runner({"name": "url", "host_only": True}), url="https://api.example.com")
    assert said.startswith("config.url names an address that is not open to agents made over the API: " + FILE)


def test_what_is_empty_or_as_the_form_has_it_anyway_names_nothing() -> None:
    runner = a_runner({"name": "command", "default": "kimi"}, {"name": "env", "type": "json"}, {"name": "url"})
    assert refused(runner, command="kimi", env=[], url="") == []


@pytest.mark.spec("wire/host-only-unmarked")
@pytest.mark.parametrize(
    "name",
    [
        "command",
        "cmd-line",
        "startCommand",
        "args",
        "env",
        "HOME",
        "work_dir",
        "baseURL",
        "base-url",
        "apiEndpoint",
        "webhook",
        "proxy",
        "mcp_servers",
        "socketPath",
        "api_base",
        "skill-files",
        "entry.script",
        "workdir",
        "WORKDIRS",
        "filepath",
        "pathname",
        "execpath",
        "logfile",
        "cmdline",
        "apiurl",
        "hostport",
    ],
)
def test_of_a_setting_without_a_mark_its_name_is_judged(name: str) -> None:
    config: dict[str, Any] = {name: "x"}
    assert refused(a_runner({"name": name}), **config)
    assert is_host_only(a_runner({"name": name}).config_schema[0])
    assert refused(a_runner(), **config), "a runner without a form takes anything, but not from everybody"


@pytest.mark.parametrize(
    "name", ["model", "api_key", "tone", "instruction", "temperature", "curling", "shellac", "profile"]
)
def test_other_names_are_anybodys(name: str) -> None:
    config: dict[str, Any] = {name: "calm"}
    assert refused(a_runner({"name": name}), **config) == []


@pytest.mark.spec("wire/host-only-unmarked")
def test_what_an_unmarked_setting_holds_is_judged_too() -> None:
    runner = a_runner({"name": "extras", "type": "json"}, {"name": "greeting"})
    assert refused(runner, extras=[{"options": {"command": "sh"}}])
    assert refused(runner, greeting=" HTTP://169.254.169.254/latest")
    assert refused(runner, greeting="file:///etc/passwd")
    assert refused(runner, extras={"tone": ["calm"]}, greeting="hello") == []


def test_a_runners_word_that_a_setting_is_harmless_counts_and_so_does_a_kind_that_can_name_nothing() -> None:
    runner = a_runner(
        {"name": "extra_args", "type": "json", "host_only": False},
        {"name": "server_count", "type": "integer"},
        {"name": "shell", "type": "select", "options": [{"name": "calm"}]},
        {"name": "knowledge_base", "type": "knowledge-base-multi-selector"},
    )
    assert refused(runner, extra_args={"url": "x"}, server_count=3, shell="calm", knowledge_base=["notes"]) == []
    assert refused(a_runner({"name": "shell", "type": "select"}), shell="sh"), "without choices anything can be chosen"


@pytest.mark.spec("wire/host-only-unmarked")
def test_a_form_shows_the_mark_that_was_judged() -> None:
    form = [DynamicFormItemSchema(type="string", name=name) for name in ("url", "tone")]
    assert [field.host_only for field in marked(form)] == [True, None]


def test_agents_of_a_runner_that_acts_on_the_machine_are_not_made_over_the_api() -> None:
    [said] = refused(a_runner(host_only=True))
    assert f"what agents of {RUNNER} do, they do on the host's machine: {FILE}" in said
    assert refused(a_runner(host_only=True), ApiAgents(runners=[RUNNER]), command="sh") == []
    assert refused(a_runner(host_only=True), ApiAgents(runners=["plugin:test/other/default"]))


@pytest.mark.parametrize(
    ("pattern", "fitting", "others"),
    [
        (
            "https://*.example.com",
            ["https://a.example.com", "https://A.b.EXAMPLE.com:443/x?y=z#w"],
            [
                "https://example.com",
                "https://evilexample.com",
                "http://a.example.com",
                "https://a.example.com:8443",
                "https://a.example.com.evil.test",
                "https://a.example.com@evil.test",
                "https://evil.test/a.example.com",
                "https://evil.test#.example.com",
                "https://evil.test?.example.com",
                "https://evil.test\\.example.com",
                "https://evil.test\\@a.example.com",
                "https://evil.test%2f.example.com",
                "https://evil.test\t.example.com",
                " https://a.example.com",
                "https://a.example.com/\n",
                "https:a.example.com",
                "https:///a.example.com",
                "//a.example.com",
                "https://a.example.com\u3002evil.test",
                "ftp://a.example.com",
                "file:///etc/passwd",
                "a.example.com",
                7,
                None,
                ["https://evil.test"],
                {"x": "https://evil.test"},
            ],
        ),
        ("https://api.example.com:8443", ["https://api.example.com:8443/v1"], ["https://api.example.com"]),
        (
            "http://*:*",
            ["http://a.test", "http://a.test:8080/x", "http://93.184.216.34", "http://[2606:4700:4700::1111]:81/"],
            [
                "http://127.0.0.1",
                "http://10.0.0.1:80/",
                "http://[::1]/",
                "http://[::ffff:127.0.0.1]/",
                "https://a.test",
            ],
        ),
    ],
)
def test_an_opened_address_fits_by_scheme_host_and_port_and_by_nothing_else(
    pattern: str, fitting: list[Any], others: list[Any]
) -> None:
    runner = a_runner({"name": "url", "type": "json", "host_only": True})
    assert [url for url in fitting if refused(runner, opened(pattern), url=url)] == []
    told = [url for url in others if url is not None]
    assert [url for url in told if not refused(runner, opened(pattern), url=url)] == []
    assert refused(runner, opened(pattern), url=fitting) == []
    assert refused(runner, opened(pattern), url=[fitting[0], others[0]])


def test_an_opened_address_opens_no_program_that_is_named_like_one() -> None:
    runner = a_runner({"name": "url_command"}, {"name": "launcher", "host_only": True})
    for name in ("url_command", "launcher"):
        assert refused(runner, opened("https://*"), **{name: "https://a.example.com/;id"})


def test_mcp_servers_of_an_agent_are_addresses_as_well() -> None:
    server = {"name": "tools", "url": "https://mcp.example.com/x"}
    [said] = refused_over_api(a_runner(), {}, [server], NOTHING_OPENED)
    assert said.startswith("mcp.0.url names an address that is not open")
    assert refused_over_api(a_runner(), {}, [server], opened("https://*.example.com")) == []


@pytest.mark.parametrize(
    "wrong", ["*", "https://", "https://a.*.com", "ftp://x.test", "https://x.test/path", "https://u@x"]
)
def test_what_cannot_be_opened_is_said(wrong: str) -> None:
    with pytest.raises(ValidationError, match="must be an origin such as"):
        ApiAgents(urls=[wrong])


NAMING = {
    "acp": {"command", "args", "home", "env", "base_url"},
    "claude_code": {"command", "args", "home", "env", "base_url"},
    "codex": {"command", "args", "home", "env", "base_url"},
    "http": {"url"},
    "local_agent": set[str](),
    "router_worker": set[str](),
    "echo": set[str](),
}
CLASSES = {
    "acp": "Acp",
    "claude_code": "ClaudeCode",
    "codex": "Codex",
    "http": "HttpRunner",
    "local_agent": "LocalAgent",
    "router_worker": "RouterWorker",
    "echo": "EchoRunner",
}


@pytest.mark.parametrize("runner", NAMING)
def test_every_official_runner_marks_what_names_a_program_a_path_or_an_address(runner: str) -> None:
    made = getattr(import_module(f"paddock_runners.{runner}"), CLASSES[runner])()
    manifest = made.manifest(PluginInfo(author="paddock", name=runner))
    assert {field.name for field in manifest.config_schema if field.host_only} == NAMING[runner]
    assert {field.name for field in manifest.config_schema if is_host_only(field)} == NAMING[runner]
    assert manifest.host_only is (runner in {"acp", "claude_code", "codex"})
