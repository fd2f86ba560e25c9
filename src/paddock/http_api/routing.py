"""How a handler becomes a route."""

from starlette.routing import Route

from paddock.http_api.errors import Endpoint, Handler


def route(method: str, path: str, handler: Handler) -> Route:
    found = Route(path, Endpoint(handler), methods=[method])
    found.methods = {method}  # no HEAD: asking for the head of a stream would follow the run to its end
    return found
