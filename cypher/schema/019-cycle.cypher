// Return decisions by id.
CREATE CONSTRAINT tracegraph_cycle IF NOT EXISTS
FOR (n:ReturnCycle) REQUIRE (n.workspace, n.id) IS UNIQUE
