"""A backup made while the host works is whole, is checked file by file, and a host starts from it as if nothing was."""

import asyncio
import shutil
import tarfile
from pathlib import Path

import pytest

from host.calling import a_grant
from host.scripted import ANN, SmallHouse, small_house
from keeping.conversations import THREAD, a_lively_conversation, a_turn
from paddock.storage.backup import BackupError, back_up, restore
from paddock.storage.files import FileBlobs
from paddock.storage.sqlite import SqliteStore
from paddock.storage.sqlite.rebuilding import compare
from paddock.storage.verifying import look

pytestmark = pytest.mark.anyio
