-- Plugins that all hosts on this database have. `body` is the files of one, as an archive.
create table plugins (
    plugin        text primary key,
    version       text not null,
    sha256        text not null,
    body          blob not null,
    installed_at  real not null,
    installed_by  text not null
);
