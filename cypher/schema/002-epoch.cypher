// The commit log: one node an epoch.
CREATE CONSTRAINT tracegraph_epoch IF NOT EXISTS
FOR (n:Epoch) REQUIRE (n.workspace, n.number) IS UNIQUE
