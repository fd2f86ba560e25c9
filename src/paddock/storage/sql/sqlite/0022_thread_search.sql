-- Words of conversations, to find a conversation by: its messages, and under number 0 its title. A row's number is
-- session_no * 2^32 + seq, so the newest conversations are the end of the index. Every row carries the mark of its
-- user. It is filled when somebody looks for something, so whoever never does pays nothing for it.
create virtual table thread_search using fts5 (
    tokens, content = '', contentless_delete = 1, prefix = '1 3', tokenize = "ascii tokenchars '$+<=>|~%#@&'"
);

-- Up to which fact a conversation is in it, and whether its present title is.
create table thread_search_progress (
    session_no  integer not null primary key,
    seq         integer not null,
    titled      integer not null
);

-- Whoever deletes, erases, changes or renames need not know of it.
create trigger thread_search_forgets_items after delete on transcript begin
    delete from thread_search where rowid = (old.session_no << 32) + old.seq;
end;
create trigger thread_search_forgets_text after update of content on transcript begin
    delete from thread_search where rowid = (old.session_no << 32) + old.seq;
    update thread_search_progress set seq = new.seq - 1
     where session_no = new.session_no and seq >= new.seq and new.content <> '';
end;
create trigger thread_search_forgets_sessions after delete on sessions begin
    delete from thread_search where rowid = old.session_no << 32;
    delete from thread_search_progress where session_no = old.session_no;
end;
create trigger thread_search_learns_titles after insert on session_details when new.title is not null begin
    update thread_search_progress set titled = 0
     where session_no = (select session_no from sessions where session_id = new.session_id);
end;
create trigger thread_search_forgets_titles after update of title on session_details when new.title is not old.title
begin
    delete from thread_search
     where rowid = (select session_no << 32 from sessions where session_id = new.session_id);
    update thread_search_progress set titled = 0
     where session_no = (select session_no from sessions where session_id = new.session_id);
end;
