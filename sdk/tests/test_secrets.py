"""What a run is told in confidence reaches it, and nothing that shows or keeps things."""

import pytest

from paddock_sdk import AgentRunner, HostApi, Results, RunContext, message
from paddock_sdk.protocol.run_context import AgentRunRequest
from paddock_sdk.secrets import Secrets
from paddock_sdk.testing import pretend_host

pytestmark = pytest.mark.anyio


class Confidant(AgentRunner):
    async def run(self, ctx: RunContext, api: HostApi) -> Results:
        assert "t0p" not in repr(ctx) + ctx.model_dump_json() + repr(api.secrets) + f"{api.secrets}"
        yield message(",".join(f"{name}={len(value)}" for name, value in api.secrets.items()) or "none")


@pytest.mark.spec("wire/secrets")
async def test_a_secret_reaches_its_run_and_is_not_part_of_the_context() -> None:
    async with pretend_host(Confidant()) as host:
        run = await host.start("hi", secrets={"mcp_token": "t0p-secret"})
        assert (await run.results()).text == "mcp_token=10"
        assert (await host.run("hi")).text == "none"


def test_showing_secrets_shows_their_names_only() -> None:
    assert repr(Secrets({"mcp_token": "t0p-secret"})) == "Secrets(mcp_token=***)"


def test_the_params_of_a_run_do_not_show_its_secrets() -> None:
    params = AgentRunRequest.model_construct(runner_id="r", runner_name="n", secrets={"mcp_token": "t0p-secret"})
    assert "t0p" not in repr(params)


@pytest.mark.parametrize("said", [None, 7, ["a"], {"a": 1}, {1: "b"}])
def test_what_is_no_name_with_a_text_is_no_secret(said: object) -> None:
    assert dict(Secrets.from_wire(said)) == {}
