-- Hosts that know step 25 may stay.
-- By its mark, which secret this installation was last used with: one row.
create table cluster_secret (
    one   integer primary key check (one = 1),
    mark  text collate "C" not null
);
