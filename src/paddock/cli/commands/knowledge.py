"""Documents that agents can search: what `paddock knowledge` takes."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from paddock.cli.commands.options import Data, Url, family, option

knowledge = family("Knowledge bases: documents that agents can search.")


KnowledgeBase = Annotated[str, typer.Argument(metavar="BASE", help="Id of the knowledge base.")]


@knowledge.command("create")
def knowledge_create(
    base: KnowledgeBase,
    name: Annotated[str, option("--name", says="What people call it; its id unless set.", metavar="N")] = "",
    description: Annotated[str, option("--description", says="What is in it.", metavar="TEXT")] = "",
    model: Annotated[
        str, option("--embedding-model", says="Search by meaning too, with this model's vectors.", metavar="M")
    ] = "",
    url: Url = None,
    data: Data = None,
) -> None:
    """Make an empty knowledge base."""
    from paddock.cli.knowledge import create

    sys.exit(create(base, name=name, description=description, model=model, url=url, data=data))


@knowledge.command("list")
def knowledge_list(
    base: Annotated[str | None, typer.Argument(metavar="[BASE]", help="List its documents.")] = None,
    url: Url = None,
    data: Data = None,
) -> None:
    """Knowledge bases, or the documents of one."""
    from paddock.cli.knowledge import list_bases, list_documents

    sys.exit(list_bases(url=url, data=data) if base is None else list_documents(base, url=url, data=data))


@knowledge.command("add")
def knowledge_add(
    base: KnowledgeBase,
    files: Annotated[list[Path], typer.Argument(help="Text, Markdown, HTML, PDF or DOCX.")],
    url: Url = None,
    data: Data = None,
) -> None:
    """Bring documents in, or new versions of them; waits until they can be found."""
    from paddock.cli.knowledge import add

    sys.exit(add(base, files, url=url, data=data))


@knowledge.command("search")
def knowledge_search(
    base: KnowledgeBase,
    query: Annotated[str, typer.Argument(help="What to look for.")],
    top: Annotated[int, option("--top", says="How many passages; 5 unless set.", metavar="N")] = 5,
    url: Url = None,
    data: Data = None,
) -> None:
    """Passages that answer a question, with the place each stands at."""
    from paddock.cli.knowledge import search

    sys.exit(search(base, query, top=top, url=url, data=data))


@knowledge.command("delete")
def knowledge_delete(
    base: KnowledgeBase,
    document: Annotated[
        str | None, typer.Argument(metavar="[DOCUMENT]", help="Name or id of one document; everything unless given.")
    ] = None,
    yes: Annotated[bool, option("--yes", says="Delete everything without being asked.")] = False,
    url: Url = None,
    data: Data = None,
) -> None:
    """Delete a knowledge base, after showing how much is in it, or one of its documents."""
    from paddock.cli.knowledge import delete

    sys.exit(delete(base, document, yes=yes, url=url, data=data))
