-- Words of transcript items. A row's number is session_no * 2^32 + seq, so a conversation is one range of the index and
-- its newest hits are the end of that range. Tokens are made by the program; the index only splits at spaces. A query
-- of one character asks for everything that begins with it, hence the prefixes.
create virtual table search using fts5 (
    tokens, content = '', contentless_delete = 1, prefix = '1', tokenize = "ascii tokenchars '$+<=>|~%#@&'"
);

-- How far a conversation is in the index. Items after this are read one by one until there are enough to index.
create table search_progress (
    session_no  integer not null primary key,
    seq         integer not null
);

-- Whoever deletes, erases or changes an item need not know of the index.
create trigger search_forgets_items after delete on transcript begin
    delete from search where rowid = (old.session_no << 32) + old.seq;
end;
create trigger search_forgets_text after update of content on transcript begin
    delete from search where rowid = (old.session_no << 32) + old.seq;
    update search_progress set seq = new.seq - 1
     where session_no = new.session_no and seq >= new.seq and new.content <> '';
end;
create trigger search_forgets_sessions after delete on sessions begin
    delete from search_progress where session_no = old.session_no;
end;
