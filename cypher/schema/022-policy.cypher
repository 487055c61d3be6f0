// Revisions of the policy.
CREATE CONSTRAINT tracegraph_policy IF NOT EXISTS
FOR (n:Policy) REQUIRE (n.workspace, n.revision) IS UNIQUE
