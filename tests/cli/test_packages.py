"""Plugin packages: what may come in, what must stay out, and that what is installed is what was agreed to."""

import os
import stat
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cli.package_makers import HONEST, PLUGIN, a_directory, a_tar, a_tar_entry, a_zip, a_zip_entry
from paddock.runners.packages import InstalledPlugins, PackageError, contents, plain_words, read_package
from paddock.runners.packages.package import WORDS
from paddock_sdk.protocol.manifest import AgentRunnerPermissions

MAKERS: dict[str, Callable[[Path], Path]] = {
    "directory": lambda top: a_directory(top / "src"),
    "zip": lambda top: a_zip(top / "p.zip"),
    "tar": lambda top: a_tar(top / "p.tar.gz"),
    "wrapped": lambda top: a_zip(top / "w.zip", {f"demo-1.0/{name}": data for name, data in HONEST.items()}),
}


@pytest.mark.parametrize("kind", MAKERS)
def test_the_same_files_are_the_same_package_however_they_come(tmp_path: Path, kind: str) -> None:
    package = read_package(MAKERS[kind](tmp_path))
    assert (package.about.id, package.about.version) == ("me/demo", "1.0")
    assert {file.path: file.content for file in package.contents.files} == HONEST
    assert package.contents.sha256 == read_package(a_directory(tmp_path / "again")).contents.sha256


@pytest.mark.parametrize(
    "name",
    ["/etc/x", "../x", "a/../../x", "a\\..\\x", "a//x", "a/./x", "a\nb", "\x1b[2J", "a/" + "x" * 256, "x/" * 600 + "y"],
)
@pytest.mark.parametrize("maker", [a_zip, a_tar])
def test_a_name_that_leads_out_or_lies_is_refused(tmp_path: Path, maker: Callable[..., Path], name: str) -> None:
    archive = maker(tmp_path / ("p.zip" if maker is a_zip else "p.tar.gz"), {**HONEST, name: b"x"})
    with pytest.raises(PackageError, match=r"outside itself|impossible name|too long"):
        read_package(archive)


@pytest.mark.parametrize(
    ("kind", "link"),
    [
        (tarfile.SYMTYPE, "/etc/passwd"),
        (tarfile.SYMTYPE, "runner.py"),
        (tarfile.LNKTYPE, "../x"),
        (tarfile.CHRTYPE, ""),
        (tarfile.BLKTYPE, ""),
        (tarfile.FIFOTYPE, ""),
        (tarfile.GNUTYPE_SPARSE, ""),
    ],
)
def test_links_and_devices_in_a_tar_are_refused(tmp_path: Path, kind: bytes, link: str) -> None:
    archive = a_tar(tmp_path / "p.tar.gz", HONEST, a_tar_entry("bad", kind, link))
    with pytest.raises(PackageError, match=r"holds a link|special file|damaged"):
        read_package(archive)


@pytest.mark.parametrize("mode", [stat.S_IFLNK | 0o777, stat.S_IFCHR | 0o600, stat.S_IFIFO | 0o600])
def test_links_and_devices_in_a_zip_are_refused(tmp_path: Path, mode: int) -> None:
    archive = a_zip(tmp_path / "p.zip", HONEST, (a_zip_entry("bad", mode), b"/etc/passwd"))
    with pytest.raises(PackageError, match=r"holds a link|special file"):
        read_package(archive)


def test_links_and_pipes_in_a_directory_are_refused_and_never_waited_for(tmp_path: Path) -> None:
    link = a_directory(tmp_path / "a")
    (link / "bad").symlink_to("/etc/passwd")
    with pytest.raises(PackageError, match=r"holds a link"):
        read_package(link)
    pipe = a_directory(tmp_path / "b")
    os.mkfifo(pipe / "bad")
    with pytest.raises(PackageError, match="special file"):
        read_package(pipe)


def test_two_names_that_some_systems_take_for_one_are_refused(tmp_path: Path) -> None:
    for number, pair in enumerate([("A.txt", "a.TXT"), ("caf\u00e9", "cafe\u0301"), ("stra\u00dfe", "STRASSE")]):
        archive = a_zip(tmp_path / f"{number}.zip", {**HONEST, pair[0]: b"1", pair[1]: b"2"})
        with pytest.raises(PackageError, match="take for one file"):
            read_package(archive)
    with pytest.raises(PackageError, match="where it also has a directory"):
        read_package(a_zip(tmp_path / "d.zip", {**HONEST, "lib": b"1", "LIB/x": b"2"}))


@pytest.mark.parametrize(
    ("files", "sentence"),
    [
        ({f"f{n}": b"" for n in range(600)}, "more than 512 entries"),
        ({"big": os.urandom(1024) * (17 * 1024)}, "over 16 MiB|times its size"),
        ({"zeros": bytes(15 * 1024 * 1024)}, "more than 100 times its size"),
        ({f"b{n}": os.urandom(64) + bytes(15 * 1024**2) for n in range(5)}, "more than"),
    ],
)
@pytest.mark.parametrize("maker", [a_zip, a_tar])
def test_a_bomb_is_refused_while_it_is_small(
    tmp_path: Path, maker: Callable[..., Path], files: dict[str, bytes], sentence: str
) -> None:
    archive = maker(tmp_path / ("p.zip" if maker is a_zip else "p.tar.gz"), {**HONEST, **files})
    with pytest.raises(PackageError, match=sentence):
        read_package(archive)


def test_a_directory_over_the_limits_is_refused(tmp_path: Path) -> None:
    source = a_directory(tmp_path / "s")
    with (source / "big").open("wb") as file:
        file.truncate(contents.MAX_FILE_BYTES + 1)
    with pytest.raises(PackageError, match="over 16 MiB"):
        read_package(source)
    (source / "big").unlink()
    for number in range(5):
        with (source / f"part{number}").open("wb") as file:
            file.truncate(15 * 1024**2)
    with pytest.raises(PackageError, match="more than 64 MiB"):
        read_package(source)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_damaged_archive_is_a_sentence_and_never_a_crash(tmp_path: Path, data: st.DataObject) -> None:
    archive = data.draw(st.sampled_from([a_zip(tmp_path / "p.zip"), a_tar(tmp_path / "p.tar.gz")]))
    raw = bytearray(archive.read_bytes())
    for _ in range(data.draw(st.integers(1, 5))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    archive.write_bytes(raw[: data.draw(st.integers(0, len(raw)))])
    try:
        read_package(archive)
    except PackageError as error:
        assert str(error)  # noqa: PT017 - some damage does not matter, and then there is no error


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (('author = "me"', 'author = "../me"'), "not a name"),
        (('author = "me"', ""), "author"),
        (('command = ["python", "runner.py"]', "command = []"), "command"),
        (('history = ["page"]', 'history = ["everything"]'), "history"),
        (('history = ["page"]', 'telepathy = ["read"]'), "telepathy"),
        (("[plugin]", "[plugin"), "cannot be read"),
        (("[permissions]", "[python]\nrequirements = ['--index-url=http://x']\n[permissions]"), "package name"),
        (("[permissions]", "[python]\nrequirements = ['x @ http://y']\n[permissions]"), "package name"),
        (("[permissions]", "[python]\nrequirements = ['git+https://y']\n[permissions]"), "package name"),
        (("[permissions]", "[python]\nrequirements = 'x'\n[permissions]"), "must be a list"),
        (("[permissions]", "[python]\npath = ['/root']\n[permissions]"), "outside the plugin's directory"),
        (("[permissions]", "[python]\npath = ['../..']\n[permissions]"), "outside the plugin's directory"),
    ],
)
def test_a_wrong_plugin_file_is_a_sentence_that_names_the_place(
    tmp_path: Path, change: tuple[str, str], sentence: str
) -> None:
    source = a_directory(tmp_path, {**HONEST, "paddock-plugin.toml": PLUGIN.replace(*change).encode()})
    with pytest.raises(PackageError, match=sentence) as failure:
        read_package(source)
    assert str(tmp_path) not in str(failure.value)
    assert "paddock-plugin.toml" in str(failure.value)


def test_what_tools_leave_behind_is_not_part_of_a_package(tmp_path: Path) -> None:
    left = {"__pycache__/runner.cpython-311.pyc": b"evil", ".venv/bin/python": b"#!/bin/sh\n", ".git/config": b"x"}
    for source in (a_directory(tmp_path / "s", {**HONEST, **left}), a_zip(tmp_path / "p.zip", {**HONEST, **left})):
        assert [file.path for file in read_package(source).contents.files] == sorted(HONEST)


DATA = {
    "d/serve.json": b"{}",
    "d/deep/er/log": b"secret",
    "lib/x/local-token": b"t",
    "y/paddock.db": b"",
    ".paddock/z": b"",
}


@pytest.mark.parametrize("kind", ["directory", "zip", "tar", "wrapped"])
def test_a_hosts_data_is_left_out_whatever_its_directory_is_called(tmp_path: Path, kind: str) -> None:
    files = {**HONEST, "lib/code.py": b"", **DATA}
    source = {
        "directory": lambda: a_directory(tmp_path / "s", files),
        "zip": lambda: a_zip(tmp_path / "p.zip", files),
        "tar": lambda: a_tar(tmp_path / "p.tar.gz", files),
        "wrapped": lambda: a_zip(tmp_path / "w.zip", {f"demo/{name}": data for name, data in files.items()}),
    }[kind]()
    contents = read_package(source).contents
    assert [file.path for file in contents.files] == sorted([*HONEST, "lib/code.py"])
    assert contents.data_directories == ("d", "lib/x", "y")
    clean = a_directory(tmp_path / "clean", {**HONEST, "lib/code.py": b""})
    assert contents.sha256 == read_package(clean).contents.sha256


@pytest.mark.parametrize("maker", [a_directory, a_zip])
def test_a_package_that_is_itself_a_hosts_data_is_refused(tmp_path: Path, maker: Callable[..., Path]) -> None:
    with pytest.raises(PackageError, match="is where a host keeps its data"):
        read_package(maker(tmp_path / "p.zip", {**HONEST, "local-token": b"t"}))


def test_nothing_hides_in_an_installed_tree_by_looking_like_data(tmp_path: Path) -> None:
    plugins = InstalledPlugins(tmp_path / "data")
    entry = plugins.install(read_package(a_directory(tmp_path / "s")))
    a_directory(plugins.directory("me/demo"), {"evil/paddock.db": b"", "evil/code.py": b""})
    assert "was changed after it was installed" in plugins.problem(entry)


def test_every_permission_has_words_a_person_can_answer() -> None:
    literals = {
        (name, literal)
        for name, field in AgentRunnerPermissions.model_fields.items()
        if name not in {"platform_api", "history_scope"}
        for literal in get_args(get_args(field.annotation)[0])
    }
    assert literals == set(WORDS)
    everything = {name: [what for kind, what in WORDS if kind == name] for name, _ in WORDS}
    asked = AgentRunnerPermissions.model_validate(
        {**everything, "platform_api": ["message.edit"], "history_scope": "workspace"}
    )
    assert len(plain_words(asked)) == len(WORDS) + 2


# --- installed ------------------------------------------------------------------------------------------------------


def test_what_is_installed_is_byte_for_byte_what_was_read(tmp_path: Path) -> None:
    source = a_directory(tmp_path / "s", {**HONEST, "bin/tool": b"#!/bin/sh\n"})
    (source / "bin" / "tool").chmod(0o4755)
    package = read_package(source)
    (source / "runner.py").write_text("changed after it was shown")
    plugins = InstalledPlugins(tmp_path / "data")

    entry = plugins.install(package)

    place = tmp_path / "data" / "plugins" / "me" / "demo"
    assert (place / "runner.py").read_bytes() == HONEST["runner.py"]
    assert stat.S_IMODE((place / "bin" / "tool").stat().st_mode) == 0o755
    assert plugins.list() == [entry]
    assert plugins.problem(entry) == ""
    assert entry.asked == AgentRunnerPermissions(history=["page"])


@pytest.mark.parametrize(
    "tamper",
    [
        lambda place: (place / "runner.py").write_text("evil"),
        lambda place: (place / "extra.py").write_text(""),
        lambda place: (place / "runner.py").unlink(),
        lambda place: (place / "runner.py").chmod(0o755),
        lambda place: (place / "runner.py").rename(place / "runner2.py"),
        lambda place: ((place / "runner.py").unlink(), (place / "runner.py").symlink_to("/etc/passwd")),
    ],
)
def test_a_changed_tree_must_not_be_loaded(tmp_path: Path, tamper: Callable[[Path], object]) -> None:
    plugins = InstalledPlugins(tmp_path / "data")
    entry = plugins.install(read_package(a_directory(tmp_path / "s")))
    tamper(plugins.directory("me/demo"))
    problem = plugins.problem(entry)
    assert problem.startswith("The plugin me/demo")
    assert "Install it again with --replace" in problem


def test_bytecode_that_nobody_agreed_to_is_gone_before_it_can_run(tmp_path: Path) -> None:
    plugins = InstalledPlugins(tmp_path / "data")
    entry = plugins.install(read_package(a_directory(tmp_path / "s")))
    planted = plugins.directory("me/demo") / "__pycache__" / "runner.cpython-311.pyc"
    planted.parent.mkdir()
    planted.write_bytes(b"evil")
    assert plugins.problem(entry) == ""
    assert not planted.exists()


def test_an_installed_plugin_is_replaced_only_on_demand(tmp_path: Path) -> None:
    plugins = InstalledPlugins(tmp_path / "data")
    plugins.install(read_package(a_directory(tmp_path / "one")))
    newer = {**HONEST, "paddock-plugin.toml": PLUGIN.replace('"1.0"', '"2.0"').encode(), "new.py": b""}
    second = read_package(a_directory(tmp_path / "two", newer))
    with pytest.raises(PackageError, match=r"me/demo 1.0 is already installed. Use --replace"):
        plugins.install(second)

    entry = plugins.install(second, replace=True)

    assert [one.version for one in plugins.list()] == ["2.0"]
    assert plugins.problem(entry) == ""
    assert not list((tmp_path / "data" / "plugins" / ".work").iterdir())


def test_an_installation_that_fails_leaves_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plugins = InstalledPlugins(tmp_path / "data")
    before = plugins.install(read_package(a_directory(tmp_path / "one")))
    needs = PLUGIN.replace("[permissions]", "[python]\nrequirements = ['no-such-package-anywhere==9']\n[permissions]")
    second = read_package(a_directory(tmp_path / "two", {**HONEST, "paddock-plugin.toml": needs.encode()}))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))

    with pytest.raises(PackageError, match="Could not install no-such-package-anywhere==9"):
        plugins.install(second, replace=True)

    assert plugins.list() == [before]
    assert plugins.problem(before) == ""
    assert not list((tmp_path / "data" / "plugins" / ".work").iterdir())


def test_a_removed_plugin_is_gone_and_cannot_be_removed_twice(tmp_path: Path) -> None:
    plugins = InstalledPlugins(tmp_path / "data")
    plugins.install(read_package(a_directory(tmp_path / "s")))
    plugins.remove("me/demo")
    assert plugins.list() == []
    assert not plugins.directory("me/demo").exists()
    with pytest.raises(PackageError, match="No plugin me/demo is installed"):
        plugins.remove("me/demo")
