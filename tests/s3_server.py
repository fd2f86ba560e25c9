"""An imitation of S3 for tests: moto's server, in a process of its own on loopback. It is not S3, and says nothing of
how a real one behaves when disks or networks fail.
"""

import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager

import httpx

from loopback import free_port

BUCKET = "paddock"


@contextmanager
def an_imitation_of_s3() -> Generator[str]:
    """The address of a bucket with nothing in it."""
    port = free_port()
    endpoint = f"http://127.0.0.1:{port}"
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
    try:
        end = time.monotonic() + 60
        while not _made(endpoint):
            assert time.monotonic() < end, "moto's server did not start"
            time.sleep(0.1)
        yield f"s3://{BUCKET}/?endpoint={endpoint}&region=us-east-1"
    finally:
        process.kill()
        process.wait(30)


def _made(endpoint: str) -> bool:
    try:
        return httpx.put(f"{endpoint}/{BUCKET}", timeout=5).status_code == 200
    except httpx.TransportError:
        return False
