"""The types of the clients are those of the document: whoever changes a shape runs `make types`."""

import pytest

import api_types


@pytest.mark.spec("http/openapi")
@pytest.mark.parametrize("made", [api_types.typescript, api_types.python])
def test_the_types_of_the_clients_are_up_to_date(made: api_types.Made) -> None:
    kept = {api_types.typescript: api_types.TYPESCRIPT, api_types.python: api_types.PYTHON}[made]
    assert kept.read_text() == made(), "the API has changed: run `make types` and commit what it writes"
