"""From what the operator said, and what lies around, to a catalog of models.

A key in the environment and an Ollama on this machine are offered without being asked for; nothing is sent anywhere
but to this machine to find that out.
"""

import http.client
import json
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from paddock.models.catalog import ModelCatalog, Provider
from paddock.models.demo import NAME as DEMO
from paddock.models.demo import DemoModel
from paddock.models.keys import Key
from paddock.rules.agents.specs import ModelSpec, model_name_problem

if TYPE_CHECKING:
    from paddock.models.remote import RemoteModel

OFFERED: Mapping[str, tuple[str, str, str]] = {
    "OPENAI_API_KEY": ("openai", "OPENAI_MODEL", "gpt-5.4-mini"),
    "ANTHROPIC_API_KEY": ("anthropic", "ANTHROPIC_MODEL", "claude-sonnet-5"),
}
"""A key that is found: its provider, the variable that names a model, and the model when none is named."""
OLLAMA = "127.0.0.1:11434"
PROBE_SECONDS = 0.5
MAX_OLLAMA_BYTES = 1024 * 1024


class ModelSettingsError(Exception):
    """The models that were asked for cannot be put together; the text says why."""


def load_models(
    specs: Mapping[str, ModelSpec],
    *,
    clock: Callable[[], float],
    environ: Mapping[str, str],
    base: Path | None = None,
    default: str | None = None,
) -> ModelCatalog:
    """The demo model and those of the settings. Raises ModelSettingsError with one sentence."""
    _check_default(default, specs)
    for name, spec in specs.items():
        if problem := "the name is taken by the built-in model" if name == DEMO else model_name_problem(name):
            raise ModelSettingsError(f"models.{name}: {problem}")
        if strange := next((other for other in spec.fallbacks if other != DEMO and other not in specs), None):
            raise ModelSettingsError(f"models.{name}.fallbacks: there is no model {strange!r}")
    providers: list[Provider] = [DemoModel()]
    providers += [_provider(name, spec, clock, environ, base) for name, spec in specs.items()]
    return ModelCatalog(
        providers,
        fallbacks={name: spec.fallbacks for name, spec in specs.items()},
        retries={name: spec.retries for name, spec in specs.items()},
        clock=clock,
    )


def _check_default(default: str | None, specs: Mapping[str, ModelSpec]) -> None:
    if default is None or default == DEMO:
        return
    if default not in specs:
        known = ", ".join([DEMO, *specs])
        raise ModelSettingsError(f"default_model: there is no model {default!r}; this host has: {known}")
    if specs[default].type != "llm":
        raise ModelSettingsError(f"default_model: {default!r} does not answer messages; name one of type llm")


def _provider(
    name: str, spec: ModelSpec, clock: Callable[[], float], environ: Mapping[str, str], base: Path | None
) -> Provider:
    kind: type[RemoteModel] = import_module(f"paddock.models.{spec.provider}").MODEL  # loaded when it is named
    usual = None if spec.base_url else f"env:{kind.usual_key}"
    whole = spec if spec.model else spec.model_copy(update={"model": name})
    return kind(name, whole, Key(spec.key or usual, environ=environ, base=base), clock=clock)


def found_models(environ: Mapping[str, str]) -> dict[str, ModelSpec]:
    """Models that can be offered because a key or a server is there."""
    found: dict[str, ModelSpec] = {}
    for variable, (provider, chosen, usual) in OFFERED.items():
        if environ.get(variable, "").strip():
            name = environ.get(chosen, "").strip() or usual
            found[name] = ModelSpec.model_validate({"provider": provider, "model": name, "key": f"env:{variable}"})
    return found | _ollama_models(environ)


def _ollama_models(environ: Mapping[str, str]) -> dict[str, ModelSpec]:
    place = environ.get("OLLAMA_HOST", "").strip() or OLLAMA
    address = urlsplit(place if "//" in place else f"http://{place}")
    host, port = address.hostname or "127.0.0.1", address.port or 11434
    if host not in {"127.0.0.1", "localhost", "::1"}:
        return {}
    base_url = f"http://{f'[{host}]' if ':' in host else host}:{port}/v1"
    names = _ollama_names(host, port)
    return {
        f"ollama/{name}": ModelSpec.model_validate(
            {"provider": "openai", "model": name, "base_url": base_url, "prompt_price": 0, "completion_price": 0}
        )
        for name in names
        if model_name_problem(f"ollama/{name}") is None
    }


def _ollama_names(host: str, port: int) -> list[str]:
    connection = http.client.HTTPConnection(host, port, timeout=PROBE_SECONDS)
    try:
        connection.request("GET", "/api/tags")
        said: Any = json.loads(connection.getresponse().read(MAX_OLLAMA_BYTES))
        return [str(model["name"]) for model in said["models"]][:100]
    except (OSError, http.client.HTTPException, ValueError, KeyError, TypeError):
        return []
    finally:
        connection.close()
