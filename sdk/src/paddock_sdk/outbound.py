"""HTTP connections to addresses that somebody else named.

With the reach `public` a name is looked up once, every address it leads to is judged, and the connection is made to
the very address that was judged: a name that changes between the look and the connection changes nothing. Redirects
are not followed and proxies of the environment are not asked, because both would choose the address anew.
"""

import asyncio
import socket
from functools import cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    import httpx2

Reach = Literal["any", "public"]
LOOK_UP_SECONDS = 10.0

_NOT_PUBLIC_V4 = tuple(
    IPv4Network(one)
    for one in (
        "0.0.0.0/8",
        "10.0.0.0/8",
        "100.64.0.0/10",
        "127.0.0.0/8",
        "169.254.0.0/16",
        "172.16.0.0/12",
        "192.0.0.0/24",
        "192.0.2.0/24",
        "192.88.99.0/24",
        "192.168.0.0/16",
        "198.18.0.0/15",
        "198.51.100.0/24",
        "203.0.113.0/24",
        "224.0.0.0/3",
    )
)
"""The special purpose registry of IPv4; Python's own idea of it differs from version to version."""
_GLOBAL_V6 = IPv6Network("2000::/3")
_NOT_PUBLIC_V6 = tuple(IPv6Network(one) for one in ("2001::/23", "2001:db8::/32", "3fff::/20"))
"""What is special inside the global range; outside it nothing is public."""
_NAT64 = IPv6Network("64:ff9b::/96")
_ISATAP = frozenset({0x5EFE, 0x2005EFE})
"""The third quarter of an IPv6 address whose last quarter is an IPv4 address in a tunnel."""


class AddressRefusedError(OSError):
    """An address leads nowhere that may be reached. The text is for people and tells nothing of what is there."""


def is_public(address: str) -> bool:
    """Tell if an IP address belongs to the public internet, in any notation."""
    try:
        found = ip_address(address.partition("%")[0])
    except ValueError:
        return False
    return _is_public_v4(found) if isinstance(found, IPv4Address) else _is_public_v6(found)


def _is_public_v4(address: IPv4Address) -> bool:
    return not any(address in network for network in _NOT_PUBLIC_V4)


def _is_public_v6(address: IPv6Address) -> bool:
    """Judge what is inside, where an IPv4 address is: mapped, translated or tunnelled."""
    inner = _inside(address)
    if inner is not None:
        return _is_public_v4(inner)
    return address in _GLOBAL_V6 and not any(address in network for network in _NOT_PUBLIC_V6)


def _inside(address: IPv6Address) -> IPv4Address | None:
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    if address.sixtofour is not None:
        return address.sixtofour
    if address in _NAT64 or (int(address) >> 32) & 0xFFFFFFFF in _ISATAP:
        return IPv4Address(int(address) & 0xFFFFFFFF)
    return None


async def look_up(host: str, port: int) -> list[str]:
    """The public addresses that a host name leads to. Raises AddressRefusedError, also when only one is not public.

    A name that leads nowhere is refused in the words of one that leads inside: nobody learns which names exist here.
    """
    try:
        async with asyncio.timeout(LOOK_UP_SECONDS):
            found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError, TimeoutError):
        found = []
    addresses = list(dict.fromkeys(str(place[0]) for *_, place in found))
    if not addresses or not all(is_public(one) and not _is_own(one, port) for one in addresses):
        raise AddressRefusedError(f"{host[:200]} does not lead to a public address")
    return addresses


def _is_own(address: str, port: int) -> bool:
    """Tell if an address is this machine's own, by asking the system which source it would use. Sends nothing."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect((address, port or 9))
            return probe.getsockname()[0] == address
    except OSError:  # no way leads there
        return False


def client(reach: Reach, **options: Any) -> "httpx2.AsyncClient":
    """An HTTP client that reaches so far, follows no redirects and takes no packed answers.

    Needs `httpx2`, as the host and its runners have it. `options` are those of `httpx2.AsyncClient`. With
    `public` the environment's proxies are left out.
    """
    import httpx2

    hooks = dict(options.pop("event_hooks", {}))
    hooks["response"] = [_refuse_packed, *hooks.get("response", [])]
    headers = {"Accept-Encoding": "identity", **options.pop("headers", {})}
    options = {"follow_redirects": False, "headers": headers, "event_hooks": hooks, **options}
    if reach == "any":
        return httpx2.AsyncClient(**options)
    verify = options.pop("verify", True)
    return httpx2.AsyncClient(**options, trust_env=False, transport=_public_transport()(verify=verify, trust_env=False))


async def _refuse_packed(response: "httpx2.Response") -> None:
    """A few bytes that are packed may be any number of bytes, so nothing packed is asked for, and none is read."""
    import httpx2

    packed = response.headers.get("content-encoding", "identity").strip().lower()
    if packed not in ("", "identity"):
        raise httpx2.DecodingError(f"the answer is packed ({packed[:40]}), which was not asked for")


@cache
def _public_transport() -> Any:
    """The class is made when it is first needed: the library behind it is slow to load."""
    import httpx2

    class PublicTransport(httpx2.AsyncHTTPTransport):
        """Sends each request to the address that was judged, in the name it was asked for."""

        async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
            url = request.url
            addresses = await look_up(url.host, url.port or (443 if url.scheme == "https" else 80))
            for address in addresses[:-1]:
                try:
                    return await super().handle_async_request(_sent_to(address, request))
                except httpx2.ConnectError:
                    continue
            return await super().handle_async_request(_sent_to(addresses[-1], request))

    return PublicTransport


def _sent_to(address: str, request: "httpx2.Request") -> "httpx2.Request":
    """Address a request to an IP address; `Host` and the name for the certificate stay as they are."""
    import httpx2

    return httpx2.Request(
        request.method,
        request.url.copy_with(host=address),
        headers=request.headers,
        stream=request.stream,
        extensions={**request.extensions, "sni_hostname": request.url.host},
    )
