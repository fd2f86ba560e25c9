"""`make cluster`: PostgreSQL, NATS, an imitation of S3 and three hosts on this machine, from wheels, until Ctrl-C.

For trying things out. PostgreSQL and NATS are the real ones; S3 is moto's server, which only imitates it and keeps
everything in memory. Nothing is left behind.
"""

import shlex
import signal
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

from nats_server import NatsServer
from postgres_server import new_server
from s3_server import an_imitation_of_s3
from walk.hosts import HostProcess

HOSTS = 3
TOY = "For trying things out: PostgreSQL does not wait for its disk here, and S3 is an imitation in memory."


def main() -> None:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    signal.signal(signal.SIGINT, signal.default_int_handler)  # also where a shell has told us to ignore it
    try:
        agents = Path(sys.argv[1]).read_text() if len(sys.argv) > 1 else None
    except OSError as error:
        sys.exit(f"The agents cannot be read: {error}")
    with ExitStack() as stack:
        postgres = new_server()
        stack.callback(postgres.let_go)
        nats = NatsServer().start()
        stack.callback(nats.kill)
        env = {
            "PADDOCK_STORE": postgres.new_database(),
            "PADDOCK_BUS": nats.url,
            "PADDOCK_ARTIFACTS": stack.enter_context(an_imitation_of_s3()),
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test",
        }
        home = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="paddock-cluster-")))
        hosts = [HostProcess(home / f"host-{number}", agents=agents, env=env) for number in range(1, HOSTS + 1)]
        for host in hosts:
            stack.callback(host.stop)
            host.start()
        for name, value in env.items():
            print(f"{name}={shlex.quote(value)}")
        for host in hosts:
            print(f"{host.data.name} is ready at {host.url}", flush=True)
        print(f"{TOY}\nCtrl-C stops everything.", flush=True)
        try:
            signal.pause()
        except KeyboardInterrupt:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            print("Stopping.", flush=True)


if __name__ == "__main__":
    main()
