-- Every item in the index now carries the mark of its conversation. What was indexed without it is indexed anew, by
-- itself, when its conversation grows or is searched.
insert into search (search) values ('delete-all');
delete from search_progress;
