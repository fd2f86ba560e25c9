-- How much one user has uploaded.
create index artifacts_by_uploader on artifacts (workspace_id, user_id, size) where source = 'platform';
