"""Documents that agents can search: what `paddock knowledge` takes."""

import sys
from pathlib import Path

from paddock.cli.commands.options import argument, family, option, with_data, with_url

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
    from paddock.cli.operating.knowledge import create

    sys.exit(create(base, name=name, description=description, model=model, url=url, data=data))


@knowledge.command("list")
@argument("base", metavar="[BASE]", says="List its documents.", required=False)
@with_url
@with_data
def knowledge_list(base: str | None, url: str | None, data: Path | None) -> None:
    """Knowledge bases, or the documents of one."""
    from paddock.cli.operating.knowledge import list_bases, list_documents

    sys.exit(list_bases(url=url, data=data) if base is None else list_documents(base, url=url, data=data))


@knowledge.command("add")
@with_knowledge_base
@argument("files", says="Text, Markdown, HTML, PDF or DOCX.", kind=Path, many=True)
@with_url
@with_data
def knowledge_add(base: str, files: list[Path], url: str | None, data: Path | None) -> None:
    """Bring documents in, or new versions of them; waits until they can be found."""
    from paddock.cli.operating.knowledge import add

    sys.exit(add(base, files, url=url, data=data))


@knowledge.command("search")
@with_knowledge_base
@argument("query", says="What to look for.")
@option("--top", says="How many passages; 5 unless set.", metavar="N", kind=int, default=5)
@with_url
@with_data
def knowledge_search(base: str, query: str, top: int, url: str | None, data: Path | None) -> None:
    """Passages that answer a question, with the place each stands at."""
    from paddock.cli.operating.knowledge import search

    sys.exit(search(base, query, top=top, url=url, data=data))


@knowledge.command("delete")
@with_knowledge_base
@argument("document", metavar="[DOCUMENT]", says="Name or id of one document; everything unless given.", required=False)
@option("--yes", says="Delete everything without being asked.", flag=True)
@with_url
@with_data
def knowledge_delete(base: str, document: str | None, yes: bool, url: str | None, data: Path | None) -> None:
    """Delete a knowledge base, after showing how much is in it, or one of its documents."""
    from paddock.cli.operating.knowledge import delete

    sys.exit(delete(base, document, yes=yes, url=url, data=data))
