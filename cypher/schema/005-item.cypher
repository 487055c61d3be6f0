// An item id names one version for ever.
CREATE CONSTRAINT tracegraph_item IF NOT EXISTS
FOR (n:WorkItem) REQUIRE (n.workspace, n.id) IS UNIQUE
