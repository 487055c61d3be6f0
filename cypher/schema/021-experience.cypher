// Private memories by id.
CREATE CONSTRAINT tracegraph_experience IF NOT EXISTS
FOR (n:Experience) REQUIRE (n.workspace, n.id) IS UNIQUE
