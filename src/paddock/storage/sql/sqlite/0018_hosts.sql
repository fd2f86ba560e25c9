-- Several hosts share a PostgreSQL and never a file: nothing to do here. The number keeps both schemas in step.
select 1;
