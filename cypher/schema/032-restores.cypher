// Verdicts by id, to be withdrawn.
CREATE INDEX tracegraph_restores IF NOT EXISTS
FOR ()-[r:RESTORES]-() ON (r.workspace, r.id)
