-- By its mark, which secret this installation was last used with: one row.
create table cluster_secret (
    one   integer not null primary key check (one = 1),
    mark  text    not null
) without rowid;
