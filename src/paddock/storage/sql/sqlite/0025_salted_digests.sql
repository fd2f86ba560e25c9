-- Digests of what can be erased are salted: `paddock.storage.sqlite.resalting` goes through all logs in this step.
-- Ids of approvals were digests of what was asked for: where that is gone, its id goes from the audit trail too.
update audit set resource = 'ap_' || lower(hex(randomblob(20)))
 where resource like 'ap\_%' escape '\' and resource not in (select approval_id from approvals);

-- The digest of a document is the document's own; a job that brought it in needs it no longer.
update knowledge_jobs set content_hash = '' where status not in ('queued', 'running');
