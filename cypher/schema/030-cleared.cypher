// Verdicts by id, to be withdrawn.
CREATE INDEX tracegraph_cleared IF NOT EXISTS
FOR ()-[r:CLEARED]-() ON (r.workspace, r.id)
