-- Knowledge bases of a workspace. Numbers are never given out twice, so nothing of a deleted base can come back.
create table knowledge_bases (
    kb_no            bigint generated always as identity primary key,
    workspace_id     text collate "C" not null,
    kb_id            text collate "C" not null,
    name             text collate "C" not null,
    description      text collate "C" not null,
    embedding_model  text collate "C" not null,
    created_at       double precision not null,
    version          bigint not null default 0,
    unique (workspace_id, kb_id)
);

-- `ready` is false until the last chunk is stored; only then is a document found.
create table knowledge_documents (
    document_no   bigint generated always as identity primary key,
    kb_no         bigint not null,
    document_id   text collate "C" not null unique,
    name          text collate "C" not null,
    media_type    text collate "C" not null,
    content_hash  text collate "C" not null,
    size_bytes    bigint not null,
    created_at    double precision not null,
    metadata      bytea  not null,
    chunk_count   bigint not null default 0,
    token_count   bigint not null default 0,
    ready         boolean not null default false
);
create index knowledge_documents_by_hash on knowledge_documents (kb_no, content_hash);
create index knowledge_documents_by_id on knowledge_documents (kb_no, document_id);

create table knowledge_chunks (
    chunk_no     bigint generated always as identity primary key,
    kb_no        bigint not null,
    document_no  bigint not null,
    position     bigint not null,
    text         text collate "C" not null,
    start        bigint not null,
    "end"        bigint not null,
    page         bigint,
    heading      text collate "C" not null,
    vector       bytea  not null
);
create unique index knowledge_chunks_of_document on knowledge_chunks (document_no, position);
create index knowledge_vectors on knowledge_chunks (kb_no, chunk_no) where vector <> '';

-- The words of a chunk: tokens are made by the program, with as many positions as there are occurrences, and a mark that
-- says of which base they are. `length` counts all of them.
create table knowledge_words (
    chunk_no     bigint not null primary key references knowledge_chunks on delete cascade,
    document_no  bigint not null,
    length       bigint not null,
    tokens       tsvector not null
);
create index knowledge_words_tokens on knowledge_words using gin (tokens) with (fastupdate = off);

create table knowledge_jobs (
    job_id        text collate "C" not null primary key,
    workspace_id  text collate "C" not null,
    kb_id         text collate "C" not null,
    kb_no         bigint not null,
    document_id   text collate "C" not null,
    name          text collate "C" not null,
    content_hash  text collate "C" not null,
    size_bytes    bigint not null,
    created_at    double precision not null,
    metadata      bytea  not null,
    status        text collate "C" not null,
    done          bigint not null,
    total         bigint not null,
    message       text collate "C" not null
);
create index knowledge_jobs_unfinished on knowledge_jobs (created_at, job_id) where status in ('queued', 'running');
create index knowledge_jobs_of_base on knowledge_jobs (kb_no);

-- What a job reads, in parts, until it has ended.
create table knowledge_sources (
    job_id  text collate "C" not null,
    part    bigint not null,
    bytes   bytea  not null,
    primary key (job_id, part)
);
create function knowledge_sources_go() returns trigger language plpgsql as $$
begin
    delete from knowledge_sources where job_id = old.job_id;
    return null;
end $$;
create trigger knowledge_sources_go_with_their_job after delete on knowledge_jobs
    for each row execute function knowledge_sources_go();
