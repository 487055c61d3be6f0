// Departures by id.
CREATE CONSTRAINT tracegraph_checkpoint IF NOT EXISTS
FOR (n:Checkpoint) REQUIRE (n.workspace, n.id) IS UNIQUE
