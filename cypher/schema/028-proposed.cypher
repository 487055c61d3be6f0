// Verdicts by id, to be withdrawn.
CREATE INDEX tracegraph_proposed IF NOT EXISTS
FOR ()-[r:PROPOSED]-() ON (r.workspace, r.id)
