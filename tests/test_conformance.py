"""The specs and the tests name the same promises: none is without a test, and no test names one that is not there."""

from collections import Counter

import conformance


def test_every_promise_of_the_specs_has_a_test() -> None:
    promised = {one for page in conformance.promises().values() for one in page}
    assert len(promised) > 250
    assert promised - conformance.proofs().keys() == set()


def test_every_mark_of_a_test_names_a_promise_of_the_specs() -> None:
    promised = {one for page in conformance.promises().values() for one in page}
    assert conformance.proofs().keys() - promised == set()


def test_no_two_pages_promise_under_one_name() -> None:
    named = Counter(one for page in conformance.promises().values() for one in page)
    assert [one for one, times in named.items() if times > 1] == []


def test_the_page_that_lists_them_is_as_new_as_they_are() -> None:
    assert conformance.PAGE.read_text() == conformance.page(), "run: make conformance"
