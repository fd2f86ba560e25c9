"""Plugin packages: read them safely, install what a person agreed to, and refuse a tree that is no longer that."""

from paddock.runners.packages.contents import PackageError
from paddock.runners.packages.installed import Installed, InstalledPlugins
from paddock.runners.packages.package import Package, plain_words, read_package, unpack

__all__ = [
    "Installed",
    "InstalledPlugins",
    "Package",
    "PackageError",
    "plain_words",
    "read_package",
    "unpack",
]
