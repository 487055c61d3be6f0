// Verdicts by id, to be withdrawn.
CREATE INDEX tracegraph_invalidates IF NOT EXISTS
FOR ()-[r:INVALIDATES]-() ON (r.workspace, r.id)
