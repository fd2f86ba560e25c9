"""`make cluster`: three hosts that are one, and nothing of them afterwards."""

import os
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path

import psutil
import pytest

import loopback
from walk.hosts import wait_until

TESTS = Path(__file__).parents[1]


@pytest.mark.parametrize("ended_by", ["a service manager", "Ctrl-C"])
def test_it_starts_three_hosts_that_know_each_other_and_leaves_nothing_behind(ended_by: str) -> None:
    said: list[str] = []
    command = [sys.executable, "-m", "local_cluster"]
    cluster = subprocess.Popen(
        command, cwd=TESTS, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
    )
    threading.Thread(target=lambda: said.extend(cluster.stdout or ()), daemon=True).start()
    try:
        wait_until(lambda: any("Ctrl-C stops" in line for line in said) or cluster.poll() is not None, 120, "all of it")
        urls = re.findall(r"is ready at (\S+)", "".join(said))
        assert len(urls) == 3, "".join(said)
        for url in urls:
            wait_until(lambda url=url: "paddock_hosts 3" in loopback.get(f"{url}/metrics").text, 30, "all being met")
        below = psutil.Process(cluster.pid).children(recursive=True)
        places = re.findall(r"host=(/[^\s']+)", "".join(said))
        pasted = "".join(line for line in said if re.match("[A-Z_]+=", line)) + "echo $PADDOCK_STORE $PADDOCK_ARTIFACTS"
        shown = subprocess.run(["/bin/sh", "-c", pasted], capture_output=True, text=True, check=True).stdout
        assert re.fullmatch(r"postgresql://\S+ s3://\S+&region=\S+\n", shown), shown
    finally:
        if ended_by == "Ctrl-C":
            os.killpg(cluster.pid, signal.SIGINT)  # a terminal tells all that it has in front
        else:
            cluster.send_signal(signal.SIGTERM)
        assert cluster.wait(60) == 0
    assert "Traceback" not in "".join(said)
    wait_until(lambda: not any(one.is_running() for one in below), 30, "the end of every process")
    wait_until(lambda: not any(Path(place).exists() for place in places), 30, "the end of its files")
