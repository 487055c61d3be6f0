// Batches handed to an endpoint.
CREATE CONSTRAINT tracegraph_batch_job IF NOT EXISTS
FOR (n:BatchJob) REQUIRE (n.workspace, n.id) IS UNIQUE
