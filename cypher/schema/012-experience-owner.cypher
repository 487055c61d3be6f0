// Private memories by owner.
CREATE INDEX tracegraph_experience_owner IF NOT EXISTS
FOR (n:Experience) ON (n.workspace, n.owner)
