-- Whether whoever runs the host made a key: only such a key runs it by the name of its user. Of older keys it is known
-- of those that were made over the API, because they are in the audit, and not by whom: those have to be named themselves.
alter table api_keys add column by_operator integer not null default 0;
update api_keys set by_operator = not exists (
    select 1 from audit where action = 'api_keys.create' and result = 'allowed'
       and resource = api_keys.workspace_id || '/' || api_keys.user_id);
