"""Addresses of other servers as people write them, and what may be shown of them. Pure; nothing is looked up."""

import ipaddress
import re
from itertools import zip_longest
from urllib.parse import parse_qsl, urlencode, urlsplit

POSTGRES = ("postgresql://", "postgres://")
_WORD = re.compile(r"\S+")
_SECRET = re.compile(r"(?i)(password|sslpassword|token|secret)=[^&\s]*")


def is_postgres(address: str) -> bool:
    return address.startswith(POSTGRES)


def is_loopback(host: str) -> bool:
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def is_private_way(address: str) -> bool:
    """Return true for https, and for http on this machine: nobody on the way can change the content."""
    parts = urlsplit(address)
    if not parts.hostname:
        return False
    return parts.scheme == "https" or (parts.scheme == "http" and is_loopback(parts.hostname))


def openid_configuration_of(issuer: str) -> str:
    return issuer.rstrip("/") + "/.well-known/openid-configuration"


def without_secrets(text: str) -> str:
    return _SECRET.sub(r"\1=***", _WORD.sub(_without_user, text))


def _without_user(word: re.Match[str]) -> str:
    address = word[0]
    start, end = address.find("//"), address.rfind("@")
    return f"{address[:start]}//***{address[end:]}" if 0 <= start < end - 1 else address


def each_machine(address: str) -> list[str]:
    """The addresses of the machines that an address of PostgreSQL names: `//one,two/` or `?host=one,two`."""
    plain, mark, query = address.partition("?")
    scheme, _, rest = plain.partition("//")
    place, slash, name = rest.partition("/")
    user, at, machines = place.rpartition("@")
    asked = dict(parse_qsl(query, keep_blank_values=True))
    if machines or "host" not in asked:
        return [f"{scheme}//{user}{at}{one}{slash}{name}{mark}{query}" for one in machines.split(",")]
    hosts, ports = asked["host"].split(","), asked.get("port", "").split(",")
    pairs = zip_longest(hosts, ports[: len(hosts)], fillvalue=ports[-1])
    each = [{**asked, "host": host} | ({"port": port} if port else {}) for host, port in pairs]
    return [f"{plain}?{urlencode(one)}" for one in each] if len(each) > 1 else [address]


def place_of(address: str) -> str:
    """Describe an address without secrets: machine, port and database."""
    plain, _, query = address.partition("?")
    asked = dict(parse_qsl(query))
    where, _, name = plain.partition("//")[2].rpartition("@")[2].partition("/")
    where = where or asked.get("host", "this machine")
    port = f":{asked['port']}" if "port" in asked else ""
    name = name or asked.get("dbname") or asked.get("database") or ""
    return f"{where}{port}/{name}" if name else f"{where}{port}"


PATH = "/api/v1/runners/attach"
TOKENS = "/api/v1/runners/attach-tokens"


def attach_address(url: str) -> str:
    return f"ws{url.removeprefix('http')}{PATH}"
