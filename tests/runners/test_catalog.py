"""Plugin files and manifests: what may be listed, what may not, and that one never hides another."""

from pathlib import Path
from typing import Any

import pytest
import structlog

from paddock.runners.installed.catalog import Catalog
from paddock.runners.installed.manifests import MAX_BYTES, check_manifests, intersect, lower
from paddock.runners.installed.plugins import PluginError, load_plugin, load_plugins
from paddock_sdk.protocol.manifest import AgentRunnerPermissions

GOOD = """
[plugin]
author = "test"
name = "good"
version = "1.2"
command = ["python", "main.py"]
runs_per_process = 1
needs_settings = true
[permissions]
history = ["page"]
storage = ["plugin"]
[python]
path = ["src"]
[isolation]
level = "L1"
network = true
"""


def write(directory: Path, text: str = GOOD) -> Path:
    directory.mkdir(parents=True)
    (directory / "paddock-plugin.toml").write_text(text)
    return directory


def test_a_plugin_file_is_read_whole(tmp_path: Path) -> None:
    plugin = load_plugin(write(tmp_path / "good"))
    assert (plugin.id, plugin.version, plugin.command) == ("test/good", "1.2", ("python", "main.py"))
    assert (plugin.runs_per_process, plugin.isolation, plugin.network) == (1, "L1", True)
    assert plugin.needs_settings
    assert plugin.ceiling == AgentRunnerPermissions(history=["page"], storage=["plugin"])
    assert plugin.python_path == (tmp_path / "good" / "src",)


def test_what_is_left_out_means_the_least(tmp_path: Path) -> None:
    text = '[plugin]\nauthor = "a"\nname = "n"\ncommand = ["x"]\n'
    plugin = load_plugin(write(tmp_path / "least", text))
    assert (plugin.ceiling, plugin.isolation, plugin.network) == (AgentRunnerPermissions(), "L0", False)
    assert not plugin.needs_settings


FAULTS = [
    ("no toml at all [", "cannot be read"),
    (GOOD + f"x = {'[' * 5000}", "nested too deeply"),
    ("", "[plugin] must say its author"),
    (GOOD.replace('author = "test"', "author = 5"), "author must be a string"),
    (GOOD.replace('"test"', '"../up"'), "is not a name"),
    (GOOD.replace('["python", "main.py"]', '"python main.py"'), "command must be a list of strings"),
    (GOOD.replace('["python", "main.py"]', "[]"), "must say its command"),
    (GOOD.replace("runs_per_process = 1", "runs_per_process = -1"), "runs_per_process must be a whole number"),
    (GOOD.replace('"L1"', '"L7"'), 'isolation level must be "L0" or "L1"'),
    (GOOD.replace('["page"]', '["everything"]'), "[permissions] history.0"),
    (GOOD.replace("history =", "histories ="), "[permissions] knows no 'histories'"),
    (GOOD.replace('["src"]', '["/etc"]'), "[python] path names '/etc', which lies outside the plugin's directory"),
    (GOOD.replace('["src"]', '["src", "src/../../up"]'), "[python] path names 'src/../../up', which lies outside"),
]


@pytest.mark.parametrize(("text", "said"), FAULTS)
def test_a_bad_plugin_file_is_said_in_one_sentence(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(PluginError) as fault:
        load_plugin(write(tmp_path / "bad", text))
    assert said in str(fault.value)
    assert str(tmp_path / "bad") in str(fault.value)
    assert str(fault.value).endswith(".")
    assert "\n" not in str(fault.value)


def test_a_python_path_that_leads_out_through_a_link_is_refused(tmp_path: Path) -> None:
    directory = write(tmp_path / "good")
    (directory / "src").symlink_to(tmp_path)
    with pytest.raises(PluginError, match=r"\[python\] path names 'src', which lies outside the plugin's directory"):
        load_plugin(directory)


def test_a_bad_plugin_never_hides_the_others(tmp_path: Path) -> None:
    write(tmp_path / "b" / "good")
    write(tmp_path / "a", "nonsense")
    write(tmp_path / "c")
    with structlog.testing.capture_logs() as said:
        assert [plugin.id for plugin in load_plugins(tmp_path)] == ["test/good"]
    assert [line["action"] for line in said] == ["plugin.left_out", "plugin.left_out"]


def test_the_official_runners_are_always_there_and_can_be_replaced(tmp_path: Path) -> None:
    mine = write(tmp_path / "mine" / "echo", GOOD.replace('"test"', '"paddock"').replace('"good"', '"echo"'))
    assert "paddock/echo" in Catalog.load(installed=tmp_path / "plugins").plugins
    catalog = Catalog.load(installed=tmp_path / "plugins", further=[tmp_path / "mine"])
    assert catalog.plugins["paddock/echo"].directory == mine


# --- manifests --------------------------------------------------------------------------------------------------------


def manifest(**changes: Any) -> dict[str, Any]:
    return {
        "id": "plugin:test/good/default",
        "name": "default",
        "label": {"en_US": "Default"},
        "capabilities": {},
        "permissions": {},
        "context": {},
    } | changes


UNLISTED = {
    "another plugin's": manifest(id="plugin:test/other/default"),
    "another author's": manifest(id="plugin:evil/good/default"),
    "no id at all": manifest(id="default"),
    "version two": manifest(protocol_version="2"),
    "version zero": manifest(protocol_version="0.9"),
    "version one as a number": manifest(protocol_version=1),
    "version null": manifest(protocol_version=None),
    "no label": {key: value for key, value in manifest().items() if key != "label"},
    "no object": "default",
    "nothing": None,
    "a permission nobody knows": manifest(name="typo", permissions={"history": ["page", "rewrite"]}),
    "permissions that are no list": manifest(permissions={"storage": "all"}),
}


@pytest.mark.parametrize("case", UNLISTED)
def test_a_bad_manifest_is_not_listed_warned_of_and_hides_nothing(case: str) -> None:
    with structlog.testing.capture_logs() as said:
        listing = check_manifests("test/good", [UNLISTED[case], manifest()], AgentRunnerPermissions())
    assert list(listing.runners) == ["plugin:test/good/default"]
    assert [line["reason"] for line in said] == listing.problems
    assert [line["action"] for line in said] == ["runner.not_listed"]


@pytest.mark.parametrize("version", ["1", "1.7"])
def test_the_same_major_version_is_listed_and_a_missing_one_means_one(version: str) -> None:
    assert check_manifests("test/good", [manifest(protocol_version=version)], None).runners
    [listed] = check_manifests("test/good", [manifest()], None).runners.values()
    assert listed.protocol_version == "1"


def test_two_manifests_with_one_id_are_both_refused_by_name_and_others_are_listed() -> None:
    twins = [manifest(name="one"), manifest(name="two"), manifest(id="plugin:test/good/third")]
    listing = check_manifests("test/good", twins, None)
    assert list(listing.runners) == ["plugin:test/good/third"]
    said = "2 manifests have the id 'plugin:test/good/default'; give each an id of its own"
    assert listing.problems == [f"runner 'one': {said}", f"runner 'two': {said}"]


def test_the_reason_of_a_wrong_manifest_is_told_for_its_runner_only() -> None:
    wrong = manifest(id="plugin:test/good/wrong", name="wrong", protocol_version="2")
    listing = check_manifests("test/good", [wrong, manifest()], None)
    assert list(listing.unlisted) == ["plugin:test/good/wrong"]
    assert listing.why_none == ""


PROBLEMS = [
    ("a permission nobody knows", "runner 'typo': permissions.history.1: 'rewrite' is not known; known are"),
    ("no label", "runner 'default': label is missing"),
    ("version one as a number", "runner 'default': its protocol_version must be a string, such as \"1\""),
    ("version two", "runner 'default': its manifest is of protocol version '2', this host speaks '1'"),
    ("another plugin's", "runner 'default': its id 'plugin:test/other/default' belongs to test/other, not to"),
    ("nothing", "runner without a name: its manifest is not an object"),
]


@pytest.mark.parametrize(("case", "sentence"), PROBLEMS)
def test_why_a_runner_is_not_listed_is_said_in_plain_words(case: str, sentence: str) -> None:
    listing = check_manifests("test/good", [UNLISTED[case]], None)
    assert listing.why_none.startswith(sentence)
    assert check_manifests("test/good", [], None).why_none == "it offers no runners"


def test_a_kind_of_permission_from_the_future_opens_nothing_and_is_warned_of() -> None:
    asked = {"history": ["page"], "histori": ["search"]}
    with structlog.testing.capture_logs() as said:
        [listed] = check_manifests("test/good", [manifest(permissions=asked)], None).runners.values()
    assert listed.permissions.history == ["page"]
    assert [line["permission"] for line in said] == ["'histori' (did you mean history?)"]


def test_a_manifest_gets_no_more_than_a_person_agreed_to_and_the_rest_is_named() -> None:
    asked = {"history": ["page", "search"], "storage": ["plugin", "workspace"], "history_scope": "workspace"}
    ceiling = AgentRunnerPermissions(history=["page"], tools=["call"])
    with structlog.testing.capture_logs() as said:
        [listed] = check_manifests("test/good", [manifest(permissions=asked)], ceiling).runners.values()
    assert listed.permissions == AgentRunnerPermissions(history=["page"])
    [line] = said
    assert line["action"] == "runner.above_ceiling"
    assert line["left_out"] == {
        "history": ["search"],
        "storage": ["plugin", "workspace"],
        "history_scope": "workspace",
    }
    assert line.keys() == {"event", "action", "log_level", "runner_id", "left_out"}


def test_the_lower_of_two_ceilings_counts_and_none_is_none() -> None:
    one, other = AgentRunnerPermissions(history=["page", "search"]), AgentRunnerPermissions(history=["page"])
    assert (lower(one, other), lower(one, None), lower(None, other), lower(None, None)) == (other, one, other, None)


def test_a_wider_scope_needs_both() -> None:
    wide, narrow = AgentRunnerPermissions(history_scope="workspace"), AgentRunnerPermissions()
    scopes = [intersect(a, b).history_scope for a, b in ((wide, wide), (wide, narrow), (narrow, wide))]
    assert scopes == ["workspace", "conversation", "conversation"]


@pytest.mark.spec("wire/manifest-size")
def test_manifests_are_listed_as_far_as_they_fit_together() -> None:
    """Clients are told all of them in one answer, so they may not grow without end."""
    form = [{"type": "string", "name": f"field-{number}", "label": "x" * 40} for number in range(25_000)]
    large = manifest(id="plugin:test/good/large", name="large", config_schema=form)
    listing = check_manifests("test/good", [large, manifest()], None)
    assert list(listing.runners) == [manifest()["id"]]
    assert f"at most {MAX_BYTES} bytes" in listing.unlisted["plugin:test/good/large"]
    padding = {"metadata": {"x": "x" * (MAX_BYTES // 3)}}
    many = [manifest(id=f"plugin:test/good/r{n}", name=f"r{n}", **padding) for n in range(4)]
    assert len(check_manifests("test/good", many, None).runners) == 2
