// Grants and denials by id, to be withdrawn.
CREATE INDEX tracegraph_holds IF NOT EXISTS
FOR ()-[r:HOLDS]-() ON (r.workspace, r.id)
