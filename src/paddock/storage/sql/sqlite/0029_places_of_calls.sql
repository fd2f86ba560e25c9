-- A call of a tool stands after the fact that was the last of its conversation then. Of older ones that is where their run began.
alter table tool_calls add column after_seq integer;
update tool_calls set after_seq = (select begun_seq from runs where runs.run_id = tool_calls.run_id);
create index tool_calls_of_session on tool_calls (session_id, after_seq, call_no);
drop index deliveries_of_session;
create index deliveries_of_session on deliveries (session_id, number);
