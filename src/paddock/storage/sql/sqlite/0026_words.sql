-- How many bytes of words a session's log holds, pieces of unfinished messages left out. Kept by the fence of every append.
alter table sessions add column word_bytes integer not null default 0;
update sessions set word_bytes = (
    select coalesce(sum(length(payload)), 0) from facts f
     where f.session_no = sessions.session_no and f.kind <> 'AGENT_OUTPUT:CHUNK');
