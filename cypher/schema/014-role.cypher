// As what.
CREATE CONSTRAINT tracegraph_role IF NOT EXISTS
FOR (n:Role) REQUIRE (n.workspace, n.id) IS UNIQUE
