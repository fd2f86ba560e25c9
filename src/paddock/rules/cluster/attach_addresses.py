"""Where runners from elsewhere attach to a host, said once for all who need it. Pure."""

PATH = "/api/v1/runners/attach"
TOKENS = "/api/v1/runners/attach-tokens"


def attach_address(url: str) -> str:
    """The address of the connection, at a host that is reached under `url`."""
    return f"ws{url.removeprefix('http')}{PATH}"
