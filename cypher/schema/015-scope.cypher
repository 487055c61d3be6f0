// The unit of permission.
CREATE CONSTRAINT tracegraph_scope IF NOT EXISTS
FOR (n:Scope) REQUIRE (n.workspace, n.id) IS UNIQUE
