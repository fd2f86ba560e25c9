from collections.abc import Iterator

import pytest

from safety.tenants import Tenant, key_of, tenant
from walk.hosts import HostProcess

LIFTED = {"PADDOCK_CALLS_PER_SECOND": "0", "PADDOCK_LOG_LEVEL": "debug"}


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HostProcess]:
    """One real host for all tests of a module; however they treat it, it must not go down."""
    host = HostProcess(tmp_path_factory.mktemp("safety") / "data", env=LIFTED).start()
    yield host
    assert host.process is not None
    assert host.process.poll() is None, "the host went down"
    host.stop()


@pytest.fixture(scope="module")
def tenants(host: HostProcess) -> tuple[Tenant, Tenant]:
    """The one who calls, and the one who must not notice."""
    acme, other = (tenant(host, workspace, key_of(host, workspace)) for workspace in ("acme", "other"))
    return acme, other
