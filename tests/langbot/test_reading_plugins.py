"""A LangBot plugin read before anything of it runs: what it is shown as, and what is refused."""

import json
import shutil
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import pytest
import yaml

from langbot.installed import TALKER
from paddock.runners.packages import Package, PackageError, plain_words, read_package


def a_copy(place: Path) -> Path:
    return Path(shutil.copytree(TALKER, place / "talker"))


def changed(place: Path, file: str, change: dict[str, Any]) -> Path:
    """A copy whose one file says something else."""
    copy = a_copy(place)
    text = yaml.safe_load((copy / file).read_text()) | change
    (copy / file).write_text(yaml.safe_dump(text))
    return copy


def about(package: Package) -> dict[str, Any]:
    return json.loads(package.contents.read("paddock-langbot.json") or b"")


def test_it_is_shown_like_any_plugin() -> None:
    package = read_package(TALKER)
    assert (package.about.id, package.about.version) == ("acme/talker", "1.2.0")
    assert package.requirements == ("langbot-plugin>=0.6.0b1,<0.8",)
    words = plain_words(package.about.ceiling, network=package.about.network)
    assert "use the tools you give the agent" in words
    assert "use this machine's network" in words
    assert "keep data that the whole workspace shares" not in words


def test_its_runners_settings_are_those_of_the_plugin_and_its_own() -> None:
    [runner] = about(read_package(TALKER))["runners"]
    assert [field["name"] for field in runner["manifest"]["config_schema"]] == ["greeting", "tone", "api-key"]
    assert about(read_package(TALKER))["settings"] == {"greeting": "hello"}


def test_settings_that_name_something_outside_are_shown_before_anybody_agrees(tmp_path: Path) -> None:
    file = "components/runner/default.yaml"
    spec = yaml.safe_load((TALKER / file).read_text())["spec"]
    odd = {"name": "server", "type": "select", "options": ["a", "b"]}
    fields = [{"name": "base-url"}, {"name": "tone"}, odd, {"name": "workflow-path", "type": "string"}]
    more = changed(tmp_path, file, {"spec": {**spec, "config": fields}})
    assert read_package(more).host_only == ("base-url", "workflow-path")
    assert read_package(TALKER).host_only == ()


def test_what_people_agree_to_is_part_of_the_hash(tmp_path: Path) -> None:
    file = "components/runner/default.yaml"
    spec = yaml.safe_load((TALKER / file).read_text())["spec"]
    more = changed(tmp_path, file, {"spec": {**spec, "permissions": {"storage": ["workspace"]}}})
    assert read_package(more).contents.sha256 != read_package(TALKER).contents.sha256
    assert read_package(more).about.ceiling.storage == ["binding", "workspace"]


def test_a_package_of_langbot_itself_is_read(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "talker-1.2.0.lbpkg", "w") as archive:
        for file in sorted(TALKER.rglob("*")):
            archive.write(file, file.relative_to(TALKER))
    assert read_package(tmp_path / "talker-1.2.0.lbpkg").about.id == "acme/talker"


def test_a_runner_of_the_development_branch_asks_for_the_sdk_that_knows_it(tmp_path: Path) -> None:
    place = changed(tmp_path, "components/runner/default.yaml", {"kind": "AgentRunner"})
    manifest = yaml.safe_load((place / "manifest.yaml").read_text())
    components = manifest["spec"]["components"]
    components["AgentRunner"] = components.pop("Runner")
    components["Tool"] = {"fromDirs": [{"path": "components/tools/"}]}
    (place / "manifest.yaml").write_text(yaml.safe_dump(manifest))
    package = read_package(place)
    assert package.requirements == ("langbot-plugin>=0.5.3,<0.6",)
    assert about(package)["runners"][0]["kind"] == "AgentRunner"
    assert "not used here: Tool" in package.about.description


@pytest.mark.parametrize(
    ("file", "change", "words"),
    [
        ("manifest.yaml", {"kind": "Pipeline"}, "is not that of a LangBot plugin"),
        ("manifest.yaml", {"spec": {"components": {"Tool": {}}}}, r"offers no runner \(it has: Tool\)"),
        ("manifest.yaml", {"metadata": {"name": "talker"}}, "must say its author"),
        ("manifest.yaml", {"metadata": {"author": "../up", "name": "talker"}}, "paddock-plugin.toml"),
    ],
)
def test_what_cannot_be_run_is_refused_with_a_sentence(
    tmp_path: Path, file: str, change: dict[str, Any], words: str
) -> None:
    with pytest.raises(PackageError, match=words):
        read_package(changed(tmp_path, file, change))


def test_a_manifest_that_grows_when_it_is_written_out_is_refused(tmp_path: Path) -> None:
    grows = "".join(f"x{n}: &x{n} [{', '.join([f'*x{n - 1}'] * 9)}]\n" for n in range(1, 12))
    copy = a_copy(tmp_path)
    manifest = (copy / "manifest.yaml").read_text()
    (copy / "manifest.yaml").write_text(f"x0: &x0 [a]\n{grows}{manifest}")
    with pytest.raises(PackageError, match="refers to other parts of itself"):
        read_package(copy)


@pytest.mark.parametrize("line", ["-e ../elsewhere", "evil @ https://example.invalid/evil.whl", "--index-url=x"])
def test_requirements_may_name_packages_and_no_places(tmp_path: Path, line: str) -> None:
    copy = a_copy(tmp_path)
    (copy / "requirements.txt").write_text(f"httpx>=0.27  # a client\n{line}\n")
    with pytest.raises(PackageError, match="must be a package name"):
        read_package(copy)


def test_words_of_strangers_cannot_write_into_our_file(tmp_path: Path) -> None:
    metadata = {"author": "acme", "name": "talker", "description": 'x"\n[isolation]\nnetwork = false\n"'}
    package = read_package(changed(tmp_path, "manifest.yaml", {"metadata": metadata}))
    file = tomllib.loads((package.contents.read("paddock-plugin.toml") or b"").decode())
    assert file["isolation"] == {"network": True}
    assert package.about.command == ("host-python", "-m", "paddock_runners.langbot")
