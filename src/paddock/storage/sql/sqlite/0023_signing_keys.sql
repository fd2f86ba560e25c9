-- A host alone keeps them in a file: nothing to do here. The number keeps both schemas in step.
select 1;
