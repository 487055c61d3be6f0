// A receipt id names one source.
CREATE CONSTRAINT tracegraph_receipt IF NOT EXISTS
FOR (n:Receipt) REQUIRE (n.workspace, n.id) IS UNIQUE
