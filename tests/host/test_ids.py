"""Ids the host mints are time-ordered, and no two are alike, in a copy of the process neither."""

import os
from uuid import NAMESPACE_URL, UUID, uuid5

from paddock.host.ids import STOCK_BYTES, id_of, new_id


def test_ids_are_version_7_uuids_and_sort_by_when_they_were_made() -> None:
    made = [new_id() for _ in range(2 * STOCK_BYTES // 9)]  # more than the random bytes that are asked for at once
    assert len(set(made)) == len(made)
    assert all(UUID(one).version == 7 and UUID(one).variant == UUID(made[0]).variant for one in made)
    stamps = [one[:13] for one in made]
    assert stamps == sorted(stamps)


def test_the_id_of_a_name_is_what_the_library_says() -> None:
    names = ["", "w\0ann\0main", "北京", *map(str, range(200))]
    assert [id_of(name, NAMESPACE_URL) for name in names] == [str(uuid5(NAMESPACE_URL, name)) for name in names]


def test_a_copy_of_the_process_mints_other_ids() -> None:
    new_id()  # there are random bytes in stock
    reading, writing = os.pipe()
    child = os.fork()
    if not child:  # it says its next id and is gone, whatever happens
        try:
            os.write(writing, new_id().encode())
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as said:
        theirs = said.read()
    os.waitpid(child, 0)
    ours = new_id()
    assert UUID(theirs).version == 7
    assert theirs[14:] != ours[14:]
