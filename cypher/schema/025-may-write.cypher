// Grants and denials by id, to be withdrawn.
CREATE INDEX tracegraph_may_write IF NOT EXISTS
FOR ()-[r:MAY_WRITE]-() ON (r.workspace, r.id)
