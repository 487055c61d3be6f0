// Revocations and resolutions by id.
CREATE CONSTRAINT tracegraph_revocation IF NOT EXISTS
FOR (n:Revocation) REQUIRE (n.workspace, n.id) IS UNIQUE
