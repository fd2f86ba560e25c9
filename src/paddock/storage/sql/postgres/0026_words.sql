-- Hosts that know step 25 may stay. What they write meanwhile is not counted.
-- How many bytes of words a session's log holds, pieces of unfinished messages left out. Kept by the fence of every append.
alter table sessions add column word_bytes bigint not null default 0;
update sessions s set word_bytes = said.bytes
  from (select session_no, sum(octet_length(payload)) as bytes from facts where kind <> 'AGENT_OUTPUT:CHUNK' group by 1) said
 where said.session_no = s.session_no;
