"""`paddock knowledge`: knowledge bases of a running host, over its HTTP API."""

import shlex
import sys
import time
from base64 import b64encode
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any
from urllib.parse import quote

from paddock.cli.client import HostClient, RefusedError, connect
from paddock.cli.commands.options import argument, family, option, with_data, with_url
from paddock.cli.output import FAILED, CommandError, counted, want_yes, write
from paddock.rules.search.chunking import document_names

ROOT = "/api/v1/knowledge"
LOOK_SECONDS = 0.2
LINE_AWAY = "\x1b[1A\r\x1b[2K"
"""Takes the last line off the screen: a bar that is full says nothing more."""
OF_THIS_FILE = {413, 422}
"""Refusals that say nothing about the next file; all others do: the base, the key or the host is not there."""
SILENT_SECONDS = 300.0
"""How long a job may show no progress before we stop watching it; it goes on without us."""


def create(base: str, *, name: str, description: str, model: str, url: str | None, data: Path | None) -> int:
    given = {"kbId": base, "name": name, "description": description, "embeddingModel": model}
    connect(url, data).call("POST", ROOT, {key: value for key, value in given.items() if value})
    write(f"Made the knowledge base {base}. Fill it with: paddock knowledge add {base} FILE...\n")
    return 0


def list_bases(*, url: str | None, data: Path | None) -> int:
    bases = connect(url, data).call("GET", ROOT)["bases"]
    if not bases:
        sys.stderr.write("There is no knowledge base yet. Make one with: paddock knowledge create BASE\n")
    for base in bases:
        kind = f"words and {base['embeddingModel']}" if "embeddingModel" in base else "words"
        write(f"{base['kbId']}\t{base['name']}\t{kind}\n")
    return 0


def list_documents(base: str, *, url: str | None, data: Path | None) -> int:
    for document in _documents(connect(url, data), base):
        many = "passage" if document["passages"] == 1 else "passages"
        write(f"{document['documentId']}\t{document['name']}\t{document['passages']} {many}\n")
    return 0


def add(base: str, files: Sequence[Path], *, url: str | None, data: Path | None) -> int:
    """Hand all files in, then watch them until the last has ended. Each gets its word, whatever became of others."""
    host = connect(url, data)
    names = document_names(files, [document["name"] for document in _documents(host, base)])
    ended = _watch(host, base, [_handed_in(host, base, path, name) for path, name in zip(files, names, strict=True)])
    for job in ended:
        out = sys.stdout if job["status"] == "completed" else sys.stderr
        write(f"{job['name']}: {job['message']}\n", out)
    return 0 if all(job["status"] == "completed" for job in ended) else FAILED


def search(base: str, query: str, *, top: int, url: str | None, data: Path | None) -> int:
    asked = {"query": query, "topK": top}
    found = connect(url, data).call("POST", f"{_path(base)}/search", asked)["results"]
    if not found:
        sys.stderr.write("Nothing was found.\n")
    for passage in found:
        write(f"{passage['score']:.2f}  {_cited(passage['place'])}\n{_indented(passage['text'])}\n\n")
    return 0


def delete(base: str, document: str | None, *, yes: bool, url: str | None, data: Path | None) -> int:
    host = connect(url, data)
    if document is None:
        return _delete_all(host, base, yes=yes)
    known = [one for one in _documents(host, base) if document in {one["name"], one["documentId"]}]
    if not known:
        raise CommandError(f"There is no document {document} in {base}. See: paddock knowledge list {base}")
    for one in known:
        host.call("DELETE", f"{_path(base)}/documents/{quote(one['documentId'], safe='')}")
        write(f"Deleted {one['name']} from {base}.\n")
    return 0


def _delete_all(host: HostClient, base: str, *, yes: bool) -> int:
    """Delete a whole base after showing its size and asking, unless `yes`."""
    if not yes:
        write(f"{base} has {counted(sum(1 for _ in _documents(host, base)), 'document')}.\n")
        want_yes(
            "Delete all of it?",
            unasked="Deleting all of it needs a yes. Run it in a terminal, or add --yes. Or name one DOCUMENT.",
            refused="Not deleted.",
        )
    host.call("DELETE", _path(base))
    write(f"Deleted the knowledge base {base}.\n")
    return 0


def _path(base: str) -> str:
    return f"{ROOT}/{quote(base, safe='')}"


def _handed_in(host: HostClient, base: str, path: Path, name: str) -> Mapping[str, Any]:
    """The job of a file, or what would be its end where this very file is the reason that there is none."""
    try:
        return _add(host, base, name, path.read_bytes())
    except IsADirectoryError:
        cure = f"it is a directory; name the files in it: {shlex.quote(str(path))}/*"
        return {"status": "failed", "name": str(path), "message": cure}
    except OSError as error:
        return {"status": "failed", "name": str(path), "message": f"it cannot be read: {error.strerror}"}
    except RefusedError as error:
        if error.status not in OF_THIS_FILE:
            raise
        return {"status": "failed", "name": name, "message": str(error)}


def _add(host: HostClient, base: str, name: str, content: bytes) -> Mapping[str, Any]:
    body = {"name": name, "contentBase64": b64encode(content).decode()}
    return host.call("POST", f"{_path(base)}/documents", body)


def _documents(host: HostClient, base: str) -> Iterator[Mapping[str, Any]]:
    after = ""
    while True:
        page = host.call("GET", f"{_path(base)}/documents?after={quote(after)}")
        yield from page["documents"]
        if not page["hasMore"]:
            return
        after = page["documents"][-1]["documentId"]


def _watch(host: HostClient, base: str, jobs: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Follow the jobs to their end, and return them as they ended."""
    return [job if job["status"] == "failed" else _watch_one(host, base, job) for job in jobs]


def _watch_one(host: HostClient, base: str, job: Mapping[str, Any]) -> Mapping[str, Any]:
    seen = job
    with _progress(job["name"]) if sys.stderr.isatty() else nullcontext() as show:
        for seen in _followed(host, f"{_path(base)}/jobs/{job['jobId']}"):
            if show is not None and seen["total"]:  # known once it has been read and cut into passages
                show(seen["done"], seen["total"])
    return seen


@contextmanager
def _progress(name: str) -> Generator[Callable[[int, int], None]]:
    """A bar on standard error, where a person looks at it; taken away in the end."""
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


knowledge = family("Knowledge bases: documents that agents can search.")


with_knowledge_base = argument("base", metavar="BASE", says="Id of the knowledge base.")


@knowledge.command("create")
@with_knowledge_base
@option("--name", says="What people call it; its id unless set.", metavar="N", default="")
@option("--description", says="What is in it.", metavar="TEXT", default="")
@option("--embedding-model", "model", says="Search by meaning too, with this model's vectors.", metavar="M", default="")
@with_url
@with_data
def knowledge_create(base: str, name: str, description: str, model: str, url: str | None, data: Path | None) -> None:
    """Make an empty knowledge base."""
    sys.exit(create(base, name=name, description=description, model=model, url=url, data=data))


@knowledge.command("list")
@argument("base", metavar="[BASE]", says="List its documents.", required=False)
@with_url
@with_data
def knowledge_list(base: str | None, url: str | None, data: Path | None) -> None:
    """Knowledge bases, or the documents of one."""
    sys.exit(list_bases(url=url, data=data) if base is None else list_documents(base, url=url, data=data))


@knowledge.command("add")
@with_knowledge_base
@argument("files", says="Text, Markdown, HTML, PDF or DOCX.", kind=Path, many=True)
@with_url
@with_data
def knowledge_add(base: str, files: list[Path], url: str | None, data: Path | None) -> None:
    """Bring documents in, or new versions of them; waits until they can be found."""
    sys.exit(add(base, files, url=url, data=data))


@knowledge.command("search")
@with_knowledge_base
@argument("query", says="What to look for.")
@option("--top", says="How many passages; 5 unless set.", metavar="N", kind=int, default=5)
@with_url
@with_data
def knowledge_search(base: str, query: str, top: int, url: str | None, data: Path | None) -> None:
    """Passages that answer a question, with the place each stands at."""
    sys.exit(search(base, query, top=top, url=url, data=data))


@knowledge.command("delete")
@with_knowledge_base
@argument("document", metavar="[DOCUMENT]", says="Name or id of one document; everything unless given.", required=False)
@option("--yes", says="Delete everything without being asked.", flag=True)
@with_url
@with_data
def knowledge_delete(base: str, document: str | None, yes: bool, url: str | None, data: Path | None) -> None:
    """Delete a knowledge base, after showing how much is in it, or one of its documents."""
    sys.exit(delete(base, document, yes=yes, url=url, data=data))
