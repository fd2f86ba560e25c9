"""A LangBot plugin as a package of ours: read by its own files, described in our words. Runs and imports none of it.

Added are two files that a person agrees to with the rest: `paddock-plugin.toml`, and `paddock-langbot.json` for the
adapter that will run it. What the plugin has besides runners (tools, commands, pages) is not used and said so.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import PurePosixPath
from typing import Any, cast

import yaml

from paddock.rules.access.host_only import is_host_only
from paddock.runners.packages.contents import PLUGIN_FILE, Contents, PackageError, PackageFile
from paddock_sdk.protocol.manifest import AgentRunnerCapabilities, AgentRunnerPermissions, DynamicFormItemSchema

MANIFEST = "manifest.yaml"
ABOUT_FILE = "paddock-langbot.json"
REQUIREMENTS = "requirements.txt"
SDK = "langbot-plugin"
SDK_VERSIONS: Mapping[str, str] = {"Runner": ">=0.6.0b1,<0.8", "AgentRunner": ">=0.5.3,<0.6"}
"""Which SDK knows which kind. The second was never released: it is built from LangBot's development branch."""
MAX_YAML_BYTES = 256 * 1024
MAX_RUNNERS = 20

Said = dict[str, Any]


def is_langbot_plugin(contents: Contents) -> bool:
    return contents.read(PLUGIN_FILE) is None and contents.read(MANIFEST) is not None


def described(contents: Contents) -> Contents:
    """The package with what we have to know about it. Raises PackageError with a sentence."""
    manifest = _yaml(contents, MANIFEST)
    if manifest.get("kind") != "Plugin":
        raise PackageError(f"The package has no {PLUGIN_FILE}, and its {MANIFEST} is not that of a LangBot plugin.")
    runners, others = _components(contents, manifest)
    if not runners:
        more = f" (it has: {', '.join(sorted(others))})" if others else ""
        raise PackageError(f"This LangBot plugin offers no runner{more}; Paddock runs runners and nothing else of it.")
    about = {"runners": [_runner(one, manifest) for one in runners], "settings": _settings(manifest)}
    files = {
        PLUGIN_FILE: _plugin_file(manifest, runners, others, _requirements(contents, runners)),
        ABOUT_FILE: json.dumps(about, ensure_ascii=False, indent=1, sort_keys=True) + "\n",
    }
    kept = [file for file in contents.files if file.path not in files]
    made = [PackageFile(path, text.encode(), executable=False) for path, text in files.items()]
    return replace(contents, files=tuple(sorted([*kept, *made], key=lambda file: file.path)))


def host_only_settings(contents: Contents) -> list[str]:
    """Settings of its agents that only whoever runs the host makes, as the file that was added tells its forms."""
    about = _object(json.loads(contents.read(ABOUT_FILE) or b"{}"))
    runners = (_object(_object(one).get("manifest")) for one in _list(about.get("runners")))
    fields = [_object(field) for one in runners for field in _list(one.get("config_schema"))]
    return list(dict.fromkeys(str(field["name"]) for field in fields if is_host_only(_as_judged(field))))


def _as_judged(field: Said) -> DynamicFormItemSchema:
    """Return the parts of a field that tell whether it names something outside; the rest is checked with its runner."""
    options: list[Said] | None = [{}] if _list(field.get("options")) else None
    return DynamicFormItemSchema(type=str(field["type"]), name=str(field["name"]), options=options)


# --- reading ---------------------------------------------------------------------------------------------------------


def _yaml(contents: Contents, path: str) -> Said:
    raw = contents.read(path) or b""
    if len(raw) > MAX_YAML_BYTES:
        raise PackageError(f"{path} is larger than {MAX_YAML_BYTES // 1024} KiB.")
    try:
        return _object(yaml.safe_load(raw))
    except (yaml.YAMLError, ValueError, RecursionError) as problem:
        raise PackageError(f"{path} cannot be read: {str(problem).splitlines()[0]}.") from problem


def _components(contents: Contents, manifest: Said) -> tuple[list[Said], set[str]]:
    """The plugin's runners, and the kinds of component that are of no use here."""
    runners: list[Said] = []
    others: set[str] = set()
    for kind, group in _object(_object(manifest.get("spec")).get("components")).items():
        if kind not in SDK_VERSIONS:
            others.add(str(kind))
            continue
        found = (_yaml(contents, path) for path in _named(contents, _object(group)))
        runners += [one for one in found if one.get("kind") == kind]
    if len(runners) > MAX_RUNNERS:
        raise PackageError(f"This LangBot plugin offers more than {MAX_RUNNERS} runners.")
    return runners, others


def _named(contents: Contents, group: Said) -> Iterator[str]:
    """The component files that a group of the manifest names, one by one or by directory."""
    named = {str(PurePosixPath(str(path))) for path in _list(group.get("fromFiles"))}
    places = [_object(place) for place in _list(group.get("fromDirs"))]
    directories = [(PurePosixPath(str(place.get("path", ""))), place.get("maxDepth", 1)) for place in places]
    for file in contents.files:
        path = PurePosixPath(file.path)
        inside = any(_within(path, directory, depth) for directory, depth in directories)
        if file.path in named or (inside and path.suffix in (".yaml", ".yml")):
            yield file.path


def _within(path: PurePosixPath, directory: PurePosixPath, depth: object) -> bool:
    if not path.is_relative_to(directory):
        return False
    return len(path.relative_to(directory).parts) <= (depth if isinstance(depth, int) else 1)


def _requirements(contents: Contents, runners: list[Said]) -> list[str]:
    """Its own, and the SDK: in a version that knows its kind of runner."""
    text = (contents.read(REQUIREMENTS) or b"").decode(errors="replace")
    lines = [line.partition(" #")[0].strip() for line in text.splitlines()]
    asked = [line for line in lines if line and not line.startswith("#") and not _is_sdk(line)]
    kinds = {str(one["kind"]) for one in runners}
    if len(kinds) > 1:
        raise PackageError("This LangBot plugin has runners of two kinds (Runner, AgentRunner), which no SDK runs.")
    return [*asked, f"{SDK}{SDK_VERSIONS[kinds.pop()]}"]


def _is_sdk(requirement: str) -> bool:
    rest = requirement.lower().replace("_", "-").removeprefix(SDK)
    return rest != requirement.lower().replace("_", "-") and not rest[:1].isalnum() and not rest.startswith("-")


# --- saying it in our words ------------------------------------------------------------------------------------------


def _runner(component: Said, manifest: Said) -> Said:
    metadata, spec = _object(component.get("metadata")), _object(component.get("spec"))
    form = [*_form(_object(manifest.get("spec")).get("config")), *_form(spec.get("config"))]
    permissions = _permissions(component)
    told = {
        "label": _texts(metadata.get("label")) or {"en_US": str(metadata.get("name"))},
        "description": _texts(metadata.get("description")) or {},
        "capabilities": _capabilities(spec),
        "permissions": permissions,
        "context": {"supports_history_search": "search" in permissions.get("history", [])},
        "config_schema": form,
        "metadata": {"langbot": str(component["kind"])},
    }
    return {"name": str(metadata.get("name")), "kind": component["kind"], "manifest": told}


def _capabilities(spec: Said) -> dict[str, bool]:
    """Return the capabilities both sides know. `interrupt` is the adapter's own."""
    ours = set(AgentRunnerCapabilities.model_fields)
    declared = {name: value is True for name, value in _object(spec.get("capabilities")).items() if name in ours}
    return {**declared, "interrupt": True}


def _permissions(component: Said) -> dict[str, list[str]]:
    """Its own permissions in our words. State, which every LangBot runner may keep, is consented to with the storage of
    the agent; attached files are read for a runner that understands more than text."""
    spec = _object(component.get("spec"))
    asked = {name: _list(words) for name, words in _object(spec.get("permissions")).items()}
    known = {name: [str(word) for word in asked.get(name, []) if (name, word) in _WORDS] for name, _ in _WORDS}
    known["storage"] = [*known["storage"], "binding"]
    if _object(spec.get("capabilities")).get("multimodal_input") is True:
        known["artifacts"] = ["metadata", "read"]
    return {name: words for name, words in known.items() if words}


_WORDS = frozenset(
    (name, word)
    for name, words in {
        "models": ("invoke", "stream", "rerank"),
        "tools": ("detail", "call"),
        "knowledge_bases": ("list", "retrieve"),
        "history": ("page", "search"),
        "events": ("get", "page"),
        "artifacts": ("metadata", "read"),
        "storage": ("plugin", "workspace"),
    }.items()
    for word in words
)
"""Words that mean the same on both sides. `count_tokens` is done by the adapter, `interactions` become plain words."""


def _form(config: object) -> list[Said]:
    return [_field(_object(one)) for one in _list(config) if _object(one).get("name")]


def _field(said: Said) -> Said:
    field = {key: said[key] for key in ("required", "default", "options") if said.get(key) is not None}
    texts = {key: told for key in ("label", "description") if (told := _texts(said.get(key)))}
    return {**field, **texts, "name": str(said["name"]), "type": str(said.get("type") or "string")}


def _settings(manifest: Said) -> Said:
    """The plugin's own settings with their defaults: its process is started with them."""
    return {field["name"]: field.get("default") for field in _form(_object(manifest.get("spec")).get("config"))}


def _plugin_file(manifest: Said, runners: list[Said], others: set[str], requirements: list[str]) -> str:
    metadata = _object(manifest.get("metadata"))
    unused = f" (LangBot plugin; not used here: {', '.join(sorted(others))})" if others else " (LangBot plugin)"
    about = (_texts(metadata.get("description")) or {}).get("en_US", "") + unused
    lines = ["[plugin]"]
    lines += [f"{key} = {_toml(metadata.get(key))}" for key in ("author", "name", "version") if metadata.get(key)]
    lines += [f"description = {_toml(about)}", 'command = ["host-python", "-m", "paddock_runners.langbot"]']
    lines += ["", "[permissions]", *(f"{name} = {_toml(words)}" for name, words in _ceiling(runners).items())]
    lines += ["", "[python]", f"requirements = {_toml(requirements)}", "", "[isolation]", "network = true"]
    return "\n".join(lines) + "\n"


def _ceiling(runners: list[Said]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name in AgentRunnerPermissions.model_fields:
        words = {word for one in runners for word in _permissions(one).get(name, [])}
        if words:
            found[name] = sorted(words)
    return found


def _toml(value: object) -> str:
    if isinstance(value, list):
        return f"[{', '.join(_toml(one) for one in cast('list[object]', value))}]"
    plain = "".join(char if char.isprintable() else " " for char in str(value))
    return json.dumps(plain, ensure_ascii=False)


def _texts(value: object) -> dict[str, str]:
    """Text by locale; a plain string is English."""
    if isinstance(value, str):
        return {"en_US": value}
    return {locale: text for locale, text in _object(value).items() if isinstance(text, str) and text}


def _object(value: object) -> Said:
    return {str(key): one for key, one in cast("dict[object, Any]", value).items()} if isinstance(value, dict) else {}


def _list(value: object) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else []
