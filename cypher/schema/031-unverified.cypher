// Verdicts by id, to be withdrawn.
CREATE INDEX tracegraph_unverified IF NOT EXISTS
FOR ()-[r:UNVERIFIED]-() ON (r.workspace, r.id)
