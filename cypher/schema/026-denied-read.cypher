// Grants and denials by id, to be withdrawn.
CREATE INDEX tracegraph_denied_read IF NOT EXISTS
FOR ()-[r:DENIED_READ]-() ON (r.workspace, r.id)
