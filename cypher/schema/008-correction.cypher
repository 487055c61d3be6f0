// Corrections of the past, by identity: few, and looked for beside the regular versions.
CREATE INDEX tracegraph_correction IF NOT EXISTS
FOR (n:Correction) ON (n.workspace, n.scope, n.kind, n.key, n.valid_to)
