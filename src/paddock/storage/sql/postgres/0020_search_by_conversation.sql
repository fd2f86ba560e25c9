-- Here every item has carried the mark of its conversation from the beginning; the number keeps both schemas in step.
select 1;
