-- Hosts that know step 26 may stay. They keep no originals.
-- The original of a document is an artifact of its own, and goes when the document goes, however that happens.
create function knowledge_original_goes() returns trigger language plpgsql as $$
begin
  delete from artifacts where artifact_id = 'doc_' || old.document_id;
  return null;
end $$;
create trigger knowledge_original_goes after delete on knowledge_documents
  for each row execute function knowledge_original_goes();
