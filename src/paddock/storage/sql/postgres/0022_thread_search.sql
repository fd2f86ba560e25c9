-- Words of conversations, to find a conversation by: the set of tokens of each message, and under number 0 those of its
-- title, with marks that say whose it is. It is filled when somebody looks for something, so whoever never does pays
-- nothing for it.
create table thread_search (
    session_no  bigint not null,
    seq         bigint not null,
    tokens      text[] collate "C" not null,
    primary key (session_no, seq)
);
create index thread_search_tokens on thread_search using gin (tokens) with (fastupdate = off);

-- Up to which fact a conversation is in it, and whether its present title is.
create table thread_search_progress (
    session_no  bigint  not null primary key,
    seq         bigint  not null,
    titled      boolean not null
);

-- Whoever deletes, erases, changes or renames need not know of it.
create function thread_search_forgets_items() returns trigger language plpgsql as $$
begin
    delete from thread_search t using gone where t.session_no = gone.session_no and t.seq = gone.seq;
    return null;
end $$;
create trigger thread_search_forgets_items after delete on transcript referencing old table as gone
    for each statement execute function thread_search_forgets_items();

create function thread_search_forgets_text() returns trigger language plpgsql as $$
begin
    delete from thread_search where session_no = old.session_no and seq = old.seq;
    update thread_search_progress set seq = new.seq - 1
     where session_no = new.session_no and seq >= new.seq and new.content <> '';
    return null;
end $$;
create trigger thread_search_forgets_texts after update of content on transcript
    for each row execute function thread_search_forgets_text();

create function thread_search_forgets_session() returns trigger language plpgsql as $$
begin
    delete from thread_search where session_no = old.session_no;
    delete from thread_search_progress where session_no = old.session_no;
    return null;
end $$;
create trigger thread_search_forgets_sessions after delete on sessions
    for each row execute function thread_search_forgets_session();

-- The progress first: whoever is just filling holds it, and what they put in is deleted after them.
create function thread_search_forgets_title() returns trigger language plpgsql as $$
begin
    update thread_search_progress set titled = false
     where session_no = (select session_no from sessions where session_id = new.session_id);
    delete from thread_search
     where seq = 0 and session_no = (select session_no from sessions where session_id = new.session_id);
    return null;
end $$;
create trigger thread_search_learns_titles after insert on session_details
    for each row when (new.title is not null) execute function thread_search_forgets_title();
create trigger thread_search_forgets_titles after update of title on session_details
    for each row when (new.title is distinct from old.title) execute function thread_search_forgets_title();
