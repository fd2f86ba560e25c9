-- Plugins that all hosts on this database have. `body` is the files of one, as an archive.
create table plugins (
    plugin        text collate "C" primary key,
    version       text collate "C" not null,
    sha256        text collate "C" not null,
    body          bytea not null,
    installed_at  double precision not null,
    installed_by  text collate "C" not null
);
