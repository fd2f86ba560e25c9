"""`paddock knowledge`: knowledge bases of a running host, over its HTTP API."""

import shlex
import sys
import time
from base64 import b64encode
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

from paddock.cli.client import HostClient, RefusedError, at
from paddock.cli.commands.options import argument, family, option, with_host, with_yes
from paddock.cli.output import FAILED, CommandError, counted, note, want_yes, write
from paddock.rules.search.passages import document_names

LOOK_SECONDS = 0.2
LINE_AWAY = "\x1b[1A\r\x1b[2K"
"""Takes the last line off the screen, where the full bar is."""
OF_THIS_FILE = {413, 422}
"""Refusals of one file; any other one (no such base, no key, no host) counts for the next files too."""
SILENT_SECONDS = 300.0
"""How long a job may show no progress before we stop watching it; it goes on without us."""


knowledge = family("Knowledge bases: documents that agents can search.")
with_knowledge_base = argument("base", metavar="BASE", says="Id of the knowledge base.")


@knowledge.command("create")
@with_knowledge_base
@option("--name", says="Its name for people; its id unless set.", metavar="N", default="")
@option("--description", says="What is in it.", metavar="TEXT", default="")
@option("--embedding-model", "model", says="Search by meaning too, with this model's vectors.", metavar="M", default="")
@with_host
def knowledge_create(base: str, name: str, description: str, model: str, host: HostClient) -> None:
    """Make an empty knowledge base."""
    given = {"kbId": base, "name": name, "description": description, "embeddingModel": model}
    host.call("POST", at("knowledge"), {key: value for key, value in given.items() if value})
    write(f"Made the knowledge base {base}. Fill it with: paddock knowledge add {base} FILE...\n")


@knowledge.command("list")
@argument("base", metavar="[BASE]", says="List its documents.", required=False)
@with_host
def knowledge_list(base: str | None, host: HostClient) -> None:
    """Knowledge bases, or the documents of one."""
    if base is not None:
        for document in _documents(host, base):
            passages = counted(document["passages"], "passage")
            write(f"{document['documentId']}\t{document['name']}\t{passages}\n")
        return
    bases = host.call("GET", at("knowledge"))["bases"]
    if not bases:
        note("There is no knowledge base yet. Make one with: paddock knowledge create BASE")
    for one in bases:
        kind = f"words and {one['embeddingModel']}" if "embeddingModel" in one else "words"
        write(f"{one['kbId']}\t{one['name']}\t{kind}\n")


@knowledge.command("add")
@with_knowledge_base
@argument("files", says="Text, Markdown, HTML, PDF or DOCX.", kind=Path, many=True)
@with_host
def knowledge_add(base: str, files: list[Path], host: HostClient) -> int:
    """Bring documents in, or new versions of them; waits until they can be found."""
    names = document_names(files, [document["name"] for document in _documents(host, base)])
    jobs = [_handed_in(host, base, path, name) for path, name in zip(files, names, strict=True)]
    ended = [job if job["status"] == "failed" else _watch(host, base, job) for job in jobs]
    for job in ended:
        write(f"{job['name']}: {job['message']}\n", sys.stdout if job["status"] == "completed" else sys.stderr)
    return 0 if all(job["status"] == "completed" for job in ended) else FAILED


@knowledge.command("search")
@with_knowledge_base
@argument("query", says="What to look for.")
@option("--top", says="How many passages; 5 unless set.", metavar="N", kind=int, default=5)
@with_host
def knowledge_search(base: str, query: str, top: int, host: HostClient) -> None:
    """Passages that answer a question, with the place each stands at."""
    found = host.call("POST", at("knowledge", base, "search"), {"query": query, "topK": top})["results"]
    if not found:
        note("Nothing was found.")
    for passage in found:
        write(f"{passage['score']:.2f}  {_cited(passage['place'])}\n{_indented(passage['text'])}\n\n")


@knowledge.command("delete")
@with_knowledge_base
@argument("document", metavar="[DOCUMENT]", says="Name or id of one document; everything unless given.", required=False)
@with_yes
@with_host
def knowledge_delete(base: str, document: str | None, yes: bool, host: HostClient) -> None:
    """Delete a knowledge base, after showing how much is in it, or one of its documents."""
    if document is None:
        _delete_all(host, base, yes=yes)
        return
    known = [one for one in _documents(host, base) if document in {one["name"], one["documentId"]}]
    if not known:
        raise CommandError(f"There is no document {document} in {base}. See: paddock knowledge list {base}")
    for one in known:
        host.call("DELETE", at("knowledge", base, "documents", one["documentId"]))
        write(f"Deleted {one['name']} from {base}.\n")


def _delete_all(host: HostClient, base: str, *, yes: bool) -> None:
    if not yes:
        write(f"{base} has {counted(sum(1 for _ in _documents(host, base)), 'document')}.\n")
        want_yes(
            "Delete all of it?",
            unasked="Deleting all of it needs a yes. Run it in a terminal, or add --yes. Or name one DOCUMENT.",
            refused="Not deleted.",
        )
    host.call("DELETE", at("knowledge", base))
    write(f"Deleted the knowledge base {base}.\n")


def _handed_in(host: HostClient, base: str, path: Path, name: str) -> Mapping[str, Any]:
    """Return the job of a file; a failed one where the file cannot be read or is refused."""
    try:
        body = {"name": name, "contentBase64": b64encode(path.read_bytes()).decode()}
        return host.call("POST", at("knowledge", base, "documents"), body)
    except IsADirectoryError:
        cure = f"it is a directory; name the files in it: {shlex.quote(str(path))}/*"
        return {"status": "failed", "name": str(path), "message": cure}
    except OSError as error:
        return {"status": "failed", "name": str(path), "message": f"it cannot be read: {error.strerror}"}
    except RefusedError as error:
        if error.status not in OF_THIS_FILE:
            raise
        return {"status": "failed", "name": name, "message": str(error)}


def _documents(host: HostClient, base: str) -> Iterator[Mapping[str, Any]]:
    after = ""
    while True:
        page = host.call("GET", at("knowledge", base, "documents", after=after))
        yield from page["documents"]
        if not page["hasMore"]:
            return
        after = page["documents"][-1]["documentId"]


def _watch(host: HostClient, base: str, job: Mapping[str, Any]) -> Mapping[str, Any]:
    seen = job
    with _progress(job["name"]) if sys.stderr.isatty() else nullcontext() as show:
        for seen in _followed(host, at("knowledge", base, "jobs", job["jobId"])):
            if show is not None and seen["total"]:  # known once it has been read and cut into passages
                show(seen["done"], seen["total"])
    return seen


@contextmanager
def _progress(name: str) -> Generator[Callable[[int, int], None]]:
    import click

    bar = click.progressbar(length=1, label=f"{name} (being read)", file=sys.stderr, show_eta=False)

    def show(done: int, total: int) -> None:
        bar.label, bar.length, bar.show_pos = name, total, True
        bar.update(done - bar.pos)

    with bar:
        yield show
    sys.stderr.write(LINE_AWAY)


def _followed(host: HostClient, path: str) -> Iterator[Mapping[str, Any]]:
    moved, last = time.monotonic(), -1
    while True:
        job: Mapping[str, Any] = host.call("GET", path)
        yield job
        if job["status"] in {"completed", "failed"}:
            return
        if job["done"] != last:
            moved, last = time.monotonic(), job["done"]
        if time.monotonic() - moved > SILENT_SECONDS:
            raise CommandError(f"{job['name']} makes no progress. The host goes on; look again later.")
        time.sleep(LOOK_SECONDS)


def _cited(place: Mapping[str, Any]) -> str:
    parts = [place["document"]]
    if "page" in place:
        parts.append(f"page {place['page']}")
    if "heading" in place:
        parts.append(place["heading"])
    return f"{', '.join(parts)} (characters {place['start']} to {place['end']})"


def _indented(text: str) -> str:
    return "\n".join(f"      {line}" for line in text.strip().splitlines())
