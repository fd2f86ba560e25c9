-- Digests of what can be erased are salted: `paddock.storage.postgres.resalting` goes through all logs in this step.
-- Hosts of releases before cannot read them, so all hosts are stopped first.
-- Ids of approvals were digests of what was asked for: where that is gone, its id goes from the audit trail too.
update audit set resource = 'ap_' || replace(gen_random_uuid()::text, '-', '')
 where resource like 'ap\_%' and resource not in (select approval_id from approvals);

-- The digest of a document is the document's own; a job that brought it in needs it no longer.
update knowledge_jobs set content_hash = '' where status not in ('queued', 'running');
