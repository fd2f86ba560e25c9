"""Where runs work: whatever names say, under the root, one for each conversation and agent; or where the owner says."""

from pathlib import Path

import pytest

from paddock.host.agents.file import AgentsFileError, read_agents
from paddock.host.runs.working_directories import WorkingDirectories, plain
from paddock.rules.access.permissions import RunScope
from paddock.rules.errors import HostError

pytestmark = pytest.mark.anyio

STRANGE = [
    "..",
    ".",
    "",
    "/etc",
    "a/b",
    "a\\b",
    "\0",
    "~",
    "x-" + "0" * 40,
    "-rf",
    "a" * 300,
    "名",
    "CON ",
    "a\nb",
    ".git",
]


def a_scope(workspace: str = "w", conversation: str = "c", agent: str = "a") -> RunScope:
    return RunScope("r", workspace, "u", agent, conversation)


@pytest.mark.parametrize("name", STRANGE)
async def test_no_name_leads_out_of_the_root(name: str, tmp_path: Path) -> None:
    for scope in (a_scope(workspace=name), a_scope(conversation=name), a_scope(agent=name)):
        found = Path((await WorkingDirectories(tmp_path / "root").of(scope, None)).path)
        assert found.is_dir()
        assert len(found.resolve().relative_to((tmp_path / "root").resolve()).parts) == 3
    assert [path.name for path in tmp_path.iterdir()] == ["root"]


def test_names_that_differ_stay_apart() -> None:
    names = [*STRANGE, *map(plain, STRANGE), "a", "A"]
    assert len({plain(name) for name in names}) == len(set(names))


async def test_each_conversation_and_agent_has_its_own_and_keeps_it(tmp_path: Path) -> None:
    directories = WorkingDirectories(tmp_path)
    scopes = [a_scope(w, c, a) for w in "ab" for c in "cd" for a in "ef"]
    found = [(await directories.of(scope, None)).path for scope in scopes]
    assert len(set(found)) == len(scopes)
    assert [(await directories.of(scope, None)).path for scope in scopes] == found
    assert {Path(path).stat().st_mode & 0o777 for path in found} == {0o700}


async def test_a_link_in_the_way_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "root" / "w").mkdir(parents=True)
    (tmp_path / "root" / "w" / "c").symlink_to(tmp_path / "outside")
    with pytest.raises(HostError, match="cannot be made: Not a directory"):
        await WorkingDirectories(tmp_path / "root").of(a_scope(), None)
    await WorkingDirectories(tmp_path / "root").forget("w", "c")
    assert (tmp_path / "outside").is_dir()


async def test_a_forgotten_conversation_takes_its_directories_with_it_and_no_other(tmp_path: Path) -> None:
    directories = WorkingDirectories(tmp_path)
    mine = Path((await directories.of(a_scope(), None)).path)
    (mine / "out").symlink_to("/etc")
    (mine / "notes").write_text("x")
    other = Path((await directories.of(a_scope(conversation="other"), None)).path)
    await directories.forget("w", "c")
    assert (mine.parent.exists(), other.is_dir(), Path("/etc").is_dir()) == (False, True, True)
    await directories.forget("w", "never")


async def test_the_directory_an_owner_names_is_shared_and_must_be_there(tmp_path: Path) -> None:
    data = tmp_path / "data"
    (data / "blobs").mkdir(parents=True)
    (tmp_path / "repository").mkdir()
    (tmp_path / "link").symlink_to(data)
    directories = WorkingDirectories(data / "workspaces", apart_from=data)
    found = await directories.of(a_scope(), str(tmp_path / "repository"))
    assert (found.path, found.shared) == (str((tmp_path / "repository").resolve()), True)
    for wrong in (tmp_path / "missing", data, data / "blobs", tmp_path, tmp_path / "link"):
        with pytest.raises(HostError, match="working directory"):
            await directories.of(a_scope(), str(wrong))


async def test_a_directory_that_is_full_when_a_run_ends_takes_no_more_runs_until_there_is_room(tmp_path: Path) -> None:
    directories = WorkingDirectories(tmp_path, most_bytes=1000)
    path = (await directories.of(a_scope(), None)).path
    (Path(path) / "deep").mkdir()
    (Path(path) / "deep" / "large").write_bytes(b"x" * 1001)
    assert not await directories.measure(path)
    with pytest.raises(HostError, match="more than 1000 bytes"):
        await directories.of(a_scope(), None)
    assert (await directories.of(a_scope(conversation="other"), None)).path
    (Path(path) / "deep" / "large").unlink()
    assert (await directories.of(a_scope(), None)).path == path


@pytest.mark.parametrize("said", ["working_directory: nowhere", "skills: [{name: s, path: nowhere}]"])
def test_a_directory_that_an_agents_file_names_and_is_not_there_is_said_with_its_line(
    said: str, tmp_path: Path
) -> None:
    text = f"agents:\n  a:\n    runner: plugin:a/b/c\n    {said}\n"
    with pytest.raises(AgentsFileError, match=r"line 4: agents\.a\..* there is no directory 'nowhere'"):
        read_agents(text, "agents.yaml", base=tmp_path)


@pytest.mark.parametrize("said", ["working_directory: {}", "readable: [{}]", "skills: [{{name: s, path: {}}}]"])
@pytest.mark.parametrize("named", ["work/docs/inner", "short"])
def test_a_directory_that_an_agents_file_names_is_not_reached_through_a_link_some_agent_could_have_made(
    said: str, named: str, tmp_path: Path
) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "elsewhere" / "inner").mkdir(parents=True)
    (tmp_path / "work" / "docs").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "short").symlink_to("work/docs/inner")
    head = "agents:\n  w: {runner: 'plugin:a/b/c', working_directory: work}\n  a:\n    runner: plugin:a/b/c\n"
    text = f"{head}    {said.format(named)}\n"
    with pytest.raises(AgentsFileError, match=r"line 5: agents\.a\..*docs is a link in the working directory of"):
        read_agents(text, "agents.yaml", base=tmp_path)
    (tmp_path / "work" / "docs").unlink()
    (tmp_path / "work" / "docs" / "inner").mkdir(parents=True)
    read_agents(text, "agents.yaml", base=tmp_path)


async def test_a_named_directory_that_became_a_link_since_it_was_named_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "project" / "sub").mkdir(parents=True)
    (tmp_path / "elsewhere").mkdir()
    text = f"agents:\n  a: {{runner: 'plugin:a/b/c', working_directory: {tmp_path}/project/sub}}\n"
    [binding] = read_agents(text, "agents.yaml", base=tmp_path).bindings
    named = binding.extras.working_directory
    directories = WorkingDirectories(tmp_path / "root")
    assert (await directories.of(a_scope(), named)).path == str(tmp_path / "project" / "sub")
    (tmp_path / "project" / "sub").rmdir()
    (tmp_path / "project" / "sub").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(HostError, match="goes through a link"):
        await directories.of(a_scope(), named)
