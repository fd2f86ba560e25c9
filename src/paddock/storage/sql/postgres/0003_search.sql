-- Words of transcript items: the set of an item's tokens, made by the program, and two marks that say of which
-- conversation, and of which stretch of it, the item is. Arrays and not tsvector: a set has no largest size, and the
-- order of words in a phrase is looked up in the item itself.
create table search (
    session_no  bigint not null,
    seq         bigint not null,
    tokens      text[] collate "C" not null,
    primary key (session_no, seq)
);
-- Without a list of pending entries, which every search would have to read through.
create index search_tokens on search using gin (tokens) with (fastupdate = off);

-- How far a conversation is in the index. Items after this are read one by one until there are enough to index.
create table search_progress (
    session_no  bigint not null primary key,
    seq         bigint not null
);

-- Whoever deletes, erases or changes an item need not know of the index.
create function search_forgets_items() returns trigger language plpgsql as $$
begin
    delete from search using gone where search.session_no = gone.session_no and search.seq = gone.seq;
    return null;
end $$;
create trigger search_forgets_items after delete on transcript referencing old table as gone
    for each statement execute function search_forgets_items();

create function search_forgets_text() returns trigger language plpgsql as $$
begin
    delete from search where session_no = old.session_no and seq = old.seq;
    update search_progress set seq = new.seq - 1
     where session_no = new.session_no and seq >= new.seq and new.content <> '';
    return null;
end $$;
create trigger search_forgets_texts after update of content on transcript
    for each row execute function search_forgets_text();

create function search_forgets_session() returns trigger language plpgsql as $$
begin
    delete from search_progress where session_no = old.session_no;
    return null;
end $$;
create trigger search_forgets_sessions after delete on sessions
    for each row execute function search_forgets_session();
