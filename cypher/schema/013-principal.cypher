// Who returns.
CREATE CONSTRAINT tracegraph_principal IF NOT EXISTS
FOR (n:Principal) REQUIRE (n.workspace, n.id) IS UNIQUE
