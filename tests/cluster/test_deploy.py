"""The recipes in deploy/, each checked by a tool that knows its format. None of them is run here."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from needs import needs
from paddock.settings import Settings

DEPLOY = Path(__file__).parents[2] / "deploy"


def tool(name: str, *arguments: object) -> "subprocess.CompletedProcess[str]":
    program = Path(shutil.which(name) or Path(sys.executable).with_name(name))
    assert program.exists(), f"{name} is one of the dev tools and is not installed: make .venv/.installed-dev"
    return subprocess.run([program, *map(str, arguments)], capture_output=True, text=True, check=False, timeout=60)


def test_the_kubernetes_manifests_are_what_kubernetes_takes() -> None:
    done = tool("kubernetes-validate", DEPLOY / "kubernetes" / "paddock.yaml")
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_compose_file_is_what_the_compose_specification_says() -> None:
    done = tool("check-jsonschema", "--builtin-schema", "vendor.compose-spec", DEPLOY / "compose.yaml")
    assert done.returncode == 0, done.stdout + done.stderr


def test_nothing_is_wrong_with_the_recipe_of_the_image() -> None:
    done = tool("hadolint", DEPLOY / "Containerfile")
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_image_is_made_of_files_that_there_are() -> None:
    copied = re.findall(r"^COPY (?!--from)(\S+) ", (DEPLOY / "Containerfile").read_text(), re.MULTILINE)
    assert copied
    assert all((DEPLOY.parent / name).exists() for name in copied)


def test_systemd_understands_the_unit(tmp_path: Path) -> None:
    needs("systemd-analyze", "the systemd unit")
    unit = (DEPLOY / "paddock.service").read_text()
    (tmp_path / "paddock.service").write_text(re.sub(r"ExecStart=\S+ serve", "ExecStart=/bin/true", unit))
    done = tool("systemd-analyze", "verify", tmp_path / "paddock.service")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", ["Containerfile", "compose.yaml", "paddock.service", "kubernetes/paddock.yaml"])
def test_every_setting_that_a_recipe_names_exists(name: str) -> None:
    known = {f"PADDOCK_{field.upper()}" for field in Settings.model_fields}
    named = set(re.findall(r"(PADDOCK_[A-Z_]*[A-Z])\s*[=:]", (DEPLOY / name).read_text()))
    assert named - known <= {"PADDOCK_DB_PASSWORD", "PADDOCK_S3_SECRET", "PADDOCK_NAME", "PADDOCK_SECRET"}


def test_every_stop_is_given_longer_than_a_host_needs() -> None:
    compose = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
    assert int(compose["services"]["host-1"]["stop_grace_period"].removesuffix("s")) > 10
    pods = next(yaml.safe_load_all((DEPLOY / "kubernetes" / "paddock.yaml").read_text()))
    assert pods["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] > 10


def test_a_unit_waits_for_its_database_however_often_it_must_be_started_again() -> None:
    unit = (DEPLOY / "paddock.service").read_text()
    assert "StartLimitIntervalSec=0" in unit.partition("[Service]")[0].splitlines()


def test_every_host_in_a_container_says_where_the_others_reach_it() -> None:
    services = yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]
    hosts = {name: one["environment"] for name, one in services.items() if name.startswith("host-")}
    assert {name: told.get("PADDOCK_OWN_URL") for name, told in hosts.items()} == {
        name: f"http://{name}:8484" for name in hosts
    }
    assert all(told["PADDOCK_STORE"] == services["key"]["environment"]["PADDOCK_STORE"] for told in hosts.values())


def test_recipes_install_nothing_that_is_not_pinned() -> None:
    text = (DEPLOY / "Containerfile").read_text() + (DEPLOY / "compose.yaml").read_text()
    images = re.findall(r"(?:FROM|image:) (docker\.io/\S+)", text)
    assert images
    assert [image for image in images if not re.search(r":\S*\d+[.-]\d+", image)] == []
    installed = re.findall(r"pip install ([^\n&]*)", text)
    assert installed
    assert all("--require-hashes" in each or "--no-deps" in each for each in installed)


def test_the_first_key_of_the_compose_file_is_made_once() -> None:
    made = yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]["key"]["command"]
    assert made[:2] == ["keys", "create"]
    assert "--if-none" in made
