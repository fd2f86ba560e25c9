-- Hosts that know step 26 may stay.
-- What agents keep for an actor or a subject is kept apart by the platform that named it, and for schedules, other agents
-- and whoever a platform did not name by what they act for. `paddock.storage.tables.whose_state` gives what is there to
-- whom it certainly belongs, in this step.
select 1;
