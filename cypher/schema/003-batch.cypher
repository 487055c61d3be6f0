// A batch id names one epoch, which makes a retry safe.
CREATE CONSTRAINT tracegraph_batch IF NOT EXISTS
FOR (n:Epoch) REQUIRE (n.workspace, n.batch_id) IS UNIQUE
