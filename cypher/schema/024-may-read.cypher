// Grants and denials by id, to be withdrawn.
CREATE INDEX tracegraph_may_read IF NOT EXISTS
FOR ()-[r:MAY_READ]-() ON (r.workspace, r.id)
