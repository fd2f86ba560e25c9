-- Knowledge bases of a workspace. Numbers are never given out twice, so nothing of a deleted base can come back.
create table knowledge_bases (
    kb_no            integer primary key autoincrement,
    workspace_id     text    not null,
    kb_id            text    not null,
    name             text    not null,
    description      text    not null,
    embedding_model  text    not null,
    created_at       real    not null,
    version          integer not null default 0,
    unique (workspace_id, kb_id)
);

-- `ready` is 0 until the last chunk is stored; only then is a document found.
create table knowledge_documents (
    document_no   integer primary key autoincrement,
    kb_no         integer not null,
    document_id   text    not null unique,
    name          text    not null,
    media_type    text    not null,
    content_hash  text    not null,
    size_bytes    integer not null,
    created_at    real    not null,
    metadata      blob    not null,
    chunk_count   integer not null default 0,
    ready         integer not null default 0
);
create index knowledge_documents_by_hash on knowledge_documents (kb_no, content_hash);
create index knowledge_documents_by_id on knowledge_documents (kb_no, document_id);

create table knowledge_chunks (
    chunk_no     integer primary key autoincrement,
    kb_no        integer not null,
    document_no  integer not null,
    position     integer not null,
    text         text    not null,
    start        integer not null,
    "end"        integer not null,
    page         integer,
    heading      text    not null,
    vector       blob    not null
);
create unique index knowledge_chunks_of_document on knowledge_chunks (document_no, position);
create index knowledge_vectors on knowledge_chunks (kb_no, chunk_no) where vector <> x'';

-- A row's number is kb_no * 2^32 + chunk_no: a base is one range of the index. Tokens are made by the program.
create virtual table knowledge_search using fts5 (
    tokens, content = '', contentless_delete = 1, prefix = '1', tokenize = "ascii tokenchars '$+<=>|~%#@&'"
);
create trigger knowledge_search_forgets after delete on knowledge_chunks begin
    delete from knowledge_search where rowid = (old.kb_no << 32) + old.chunk_no;
end;

create table knowledge_jobs (
    job_id        text    not null primary key,
    workspace_id  text    not null,
    kb_id         text    not null,
    kb_no         integer not null,
    document_id   text    not null,
    name          text    not null,
    content_hash  text    not null,
    size_bytes    integer not null,
    created_at    real    not null,
    metadata      blob    not null,
    status        text    not null,
    done          integer not null,
    total         integer not null,
    message       text    not null
) without rowid;
create index knowledge_jobs_unfinished on knowledge_jobs (created_at, job_id) where status in ('queued', 'running');
create index knowledge_jobs_of_base on knowledge_jobs (kb_no);

-- What a job reads, in parts, until it has ended.
create table knowledge_sources (
    job_id  text    not null,
    part    integer not null,
    bytes   blob    not null,
    primary key (job_id, part)
);
create trigger knowledge_sources_go_with_their_job after delete on knowledge_jobs begin
    delete from knowledge_sources where job_id = old.job_id;
end;
