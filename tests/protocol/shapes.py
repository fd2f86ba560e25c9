"""Every public wire shape, found by walking the protocol package; a new one cannot be forgotten.

Results are one shape, the envelope, with the shape of each type's data in it.
"""

import importlib
import inspect
import pkgutil
from collections.abc import Iterator

import paddock_sdk.protocol
from paddock_sdk.protocol.host_calls import HostCallParams
from paddock_sdk.protocol.model import WireModel
from paddock_sdk.protocol.results import KNOWN_RESULTS

_BASES = {WireModel, HostCallParams, *KNOWN_RESULTS.values()}


def _all() -> Iterator[tuple[str, type[WireModel]]]:
    for module in pkgutil.iter_modules(paddock_sdk.protocol.__path__, "paddock_sdk.protocol."):
        for name, shape in vars(importlib.import_module(module.name)).items():
            if not (inspect.isclass(shape) and issubclass(shape, WireModel)) or shape in _BASES:
                continue
            if shape.__module__ == module.name and not name.startswith("_"):
                yield name, shape


SHAPES: dict[str, type[WireModel]] = dict(_all())
