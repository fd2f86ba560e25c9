"""What an operator sees of a real host: its numbers, and its traces at a collector."""

import gzip
import threading
from collections.abc import Callable, Iterator
from http.server import ThreadingHTTPServer

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

import loopback
from loopback import QuietHandler
from telemetry.test_metrics import numbers
from walk.conftest import alone
from walk.hosts import HostProcess


@alone  # each host has numbers of its own
def test_a_run_and_its_host_calls_are_in_the_numbers_of_a_real_host(new_host: Callable[..., HostProcess]) -> None:
    host = new_host().start()
    host.events(host.post("what time is it?", agent="assistant").json()["taskId"])
    told = numbers(loopback.get(f"{host.url}/metrics").text)
    assert told['paddock_runs_total{status="completed"}'] == 1
    assert told['paddock_host_calls_total{action="models.stream",result="allowed"}'] >= 1
    assert told["paddock_runs_in_flight"] == 0


class Collector(ThreadingHTTPServer):
    """Takes traces as any collector does."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Take)
        self.spans: list[Span] = []


class _Take(QuietHandler):
    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        body = gzip.decompress(body) if self.headers.get("Content-Encoding") == "gzip" else body
        assert isinstance(self.server, Collector)
        asked = ExportTraceServiceRequest.FromString(body)
        for resource in asked.resource_spans:
            self.server.spans += [span for scope in resource.scope_spans for span in scope.spans]
        self.send_response(200)
        self.end_headers()


@pytest.fixture
def collector() -> Iterator[Collector]:
    server = Collector()
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_run_its_steps_and_its_calls_are_one_trace_at_the_collector_and_hold_no_words(
    new_host: Callable[..., HostProcess], collector: Collector
) -> None:
    host = new_host(env={"PADDOCK_TRACES": f"http://127.0.0.1:{collector.server_port}"}).start()
    host.events(host.post("my secret word is xyzzy", agent="router-worker").json()["taskId"])
    assert host.stop() == 0
    by_name = {span.name: span for span in collector.spans}
    run = by_name["run"]
    parts = [span for span in collector.spans if span is not run]
    assert {"step router", "step worker", "models.stream"} <= by_name.keys()
    assert {span.trace_id for span in parts} == {run.trace_id}
    assert {span.parent_span_id for span in parts} == {run.span_id}
    assert all(run.start_time_unix_nano <= span.start_time_unix_nano <= span.end_time_unix_nano for span in parts)
    assert b"xyzzy" not in b"".join(span.SerializeToString() for span in collector.spans)
