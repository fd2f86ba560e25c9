-- The original of a document is an artifact of its own, and goes when the document goes, however that happens.
create trigger knowledge_original_goes after delete on knowledge_documents
begin
  delete from artifacts where artifact_id = 'doc_' || old.document_id;
end;
