-- A run says in which of its platform's threads it happened and when its input stopped waiting; items say where they
-- belong. Of what was recorded before, `paddock.storage.sqlite.subthreads` looks it up in the logs, in this step.
alter table runs add column subthread_id text;
alter table runs add column begun_seq integer;
alter table transcript add column subthread_id text;
-- Most conversations have no such threads and pay nothing for those that have.
create index transcript_of_subthread on transcript (session_no, subthread_id, seq) where subthread_id is not null;

update runs set begun_seq = (
  select min(f.seq) from facts f join sessions s on s.session_no = f.session_no
   where s.session_id = runs.session_id and f.position between runs.first_seq and runs.last_seq
     and f.turn_id = runs.run_id and f.target = 'AGENT'
     and f.kind in ('USER_INPUT', 'USER_INPUT:MENTION', 'CONTROL:HANDOVER_CONTEXT'));
update runs set begun_seq = last_seq where begun_seq is null and status not in ('queued', 'running');
