// Grants and denials by id, to be withdrawn.
CREATE INDEX tracegraph_denied_write IF NOT EXISTS
FOR ()-[r:DENIED_WRITE]-() ON (r.workspace, r.id)
