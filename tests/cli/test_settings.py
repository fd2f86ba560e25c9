"""Settings: which source wins, and what a person is told when a value is wrong."""

from pathlib import Path

import msgspec
import pytest

from paddock.compose.parts import timeouts_of
from paddock.rules.session.commands import SessionTimeouts
from paddock.settings import Settings, SettingsError, load, unknown_variables


def test_the_command_line_wins_over_the_environment_and_that_over_the_file(tmp_path: Path) -> None:
    (tmp_path / "paddock.toml").write_text("port = 1\nhost = '10.0.0.1'\nmax_queue = 7\n")
    environ = {"PADDOCK_PORT": "2", "PADDOCK_HOST": "10.0.0.2"}

    settings = load({"data": tmp_path, "port": "3", "host": None}, environ=environ)

    assert (settings.port, settings.host, settings.max_queue) == (3, "10.0.0.2", 7)
    assert settings.log_level == "info"


def test_nothing_set_gives_defaults_that_work_on_a_laptop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    settings = load({}, environ={})
    assert settings == Settings()
    assert settings.data == tmp_path / ".paddock"
    assert settings.on_loopback


def test_settings_made_directly_take_nothing_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PADDOCK_PORT", "1")
    assert Settings().port == 8484


@pytest.mark.parametrize(
    ("variable", "value", "sentence"),
    [
        ("PORT", "abc", "port = abc (from PADDOCK_PORT) is not allowed: it must be a whole number from 0 to 65535"),
        ("PORT", "65536", "port = 65536 (from PADDOCK_PORT) is not allowed: it must be a whole number"),
        ("ISOLATION", "L2", "isolation = L2 (from PADDOCK_ISOLATION) is not allowed: it must be L0 (same user) or L1"),
        (
            "RUN_DEADLINE_SECONDS",
            "nan",
            "run_deadline_seconds = nan (from PADDOCK_RUN_DEADLINE_SECONDS) is not allowed",
        ),
        ("KEEP_ALIVE_SECONDS", "0", "it must be a number of seconds from 1 to 300"),
        ("ENV_ALLOW", "HOME,A-B", "env_allow = A-B (from PADDOCK_ENV_ALLOW) is not allowed"),
        ("AGENTS", "/nowhere/a.yaml", "agents = /nowhere/a.yaml (from PADDOCK_AGENTS) is not allowed"),
        ("PLUGINS", "/tmp:/nowhere", "plugins = /nowhere (from PADDOCK_PLUGINS) is not allowed"),
        ("BUS", "redis://h", "bus = redis://h (from PADDOCK_BUS) is not allowed: it must be embedded"),
        ("HOST", "  ", "host = '  ' (from PADDOCK_HOST) is not allowed"),
        ("LOG_LEVEL", "loud", "it must be debug, info, warning or error"),
    ],
)
def test_a_wrong_value_is_one_sentence_with_its_origin_and_what_is_allowed(
    variable: str, value: str, sentence: str
) -> None:
    with pytest.raises(SettingsError) as failure:
        load({}, environ={f"PADDOCK_{variable}": value})
    text = str(failure.value)
    assert sentence in text
    assert text.endswith(".")
    assert "\n" not in text


def test_a_wrong_flag_is_named_as_it_was_typed() -> None:
    with pytest.raises(SettingsError, match=r"log_level = loud \(from --log-level\)"):
        load({"log_level": "loud"}, environ={})


def test_a_password_in_an_address_is_not_repeated() -> None:
    with pytest.raises(SettingsError) as failure:
        load({}, environ={"PADDOCK_STORE": "mysql://me:secret@db/x"})
    assert "secret" not in str(failure.value)
    assert "mysql://***@db/x" in str(failure.value)


def test_paths_in_a_file_are_relative_to_that_file(tmp_path: Path) -> None:
    (tmp_path / "here" / "more").mkdir(parents=True)
    (tmp_path / "here" / "agents.yaml").write_text("agents: {}")
    file = tmp_path / "here" / "my.toml"
    file.write_text("data = 'd'\nagents = 'agents.yaml'\nplugins = ['more']\n")

    settings = load({}, config=file, environ={})

    assert settings.data == tmp_path / "here" / "d"
    assert settings.agents == tmp_path / "here" / "agents.yaml"
    assert settings.plugins == (tmp_path / "here" / "more",)


def test_a_file_found_through_the_data_directory_cannot_move_it(tmp_path: Path) -> None:
    (tmp_path / "paddock.toml").write_text("data = '/elsewhere'\n")
    with pytest.raises(SettingsError, match="use --data instead"):
        load({"data": tmp_path}, environ={})


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("prot = 1\n", "prot in .* is no setting .did you mean port"),
        ("port = \n", "is not valid TOML: .*line 1"),
        ("port = true\n", "port = True .from .*my.toml. is not allowed"),
        ("plugins = 3\n", "plugins = 3 .from .*my.toml. is not allowed"),
    ],
)
def test_a_wrong_file_is_one_sentence(tmp_path: Path, text: str, sentence: str) -> None:
    file = tmp_path / "my.toml"
    file.write_text(text)
    with pytest.raises(SettingsError, match=sentence):
        load({}, config=file, environ={})


def test_a_named_file_must_exist(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"Cannot read the settings file .*: No such file"):
        load({}, environ={"PADDOCK_CONFIG": str(tmp_path / "none.toml")})


def test_lists_come_from_the_environment_with_separators() -> None:
    settings = load({}, environ={"PADDOCK_ENV_ALLOW": "A, B_C ,", "PADDOCK_PLUGINS": "/tmp:/usr"})
    assert settings.env_allow == ("A", "B_C")
    assert settings.plugins == (Path("/tmp"), Path("/usr"))


def test_a_variable_that_sets_nothing_is_pointed_out() -> None:
    environ = {"PADDOCK_PROT": "1", "PADDOCK_PORT": "1", "PADDOCK_URL": "x", "OTHER": "y"}
    [warning] = unknown_variables(environ)
    assert warning == "PADDOCK_PROT is set in the environment but is no setting (did you mean PADDOCK_PORT?)"


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("127.0.0.1", True),
        ("127.9.9.9", True),
        ("::1", True),
        ("[::1]", True),
        ("LocalHost", True),
        ("0.0.0.0", False),
        ("::", False),
        ("10.1.1.1", False),
        ("example.org", False),
        ("127.0.0.1.evil.org", False),
    ],
)
def test_only_addresses_of_this_machine_alone_count_as_loopback(host: str, expected: bool) -> None:
    assert Settings(host=host).on_loopback is expected


def test_every_setting_is_in_the_guide() -> None:
    guide = (Path(__file__).parents[2] / "docs" / "guides" / "settings.md").read_text()
    missing = [name for name in Settings.model_fields if f"`{name}`" not in guide]
    assert not missing


def test_every_wait_of_a_session_is_a_setting(tmp_path: Path) -> None:
    names = ("input_ack", "cancel_ack", "manager", "confirm", "queue")
    assert {field.name for field in msgspec.structs.fields(SessionTimeouts)} == set(names)
    assert timeouts_of(Settings()) == SessionTimeouts()
    given = {f"PADDOCK_SESSION_{name.upper()}_SECONDS": str(number) for number, name in enumerate(names, 1)}
    assert timeouts_of(load({"data": tmp_path}, environ=given)) == SessionTimeouts(1, 2, 3, 4, 5)
    with pytest.raises(SettingsError, match=r"session_confirm_seconds = 0 .* a number of seconds above 0"):
        load({"data": tmp_path}, environ={"PADDOCK_SESSION_CONFIRM_SECONDS": "0"})
