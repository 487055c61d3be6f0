// How endpoints take requests.
CREATE CONSTRAINT tracegraph_endpoint IF NOT EXISTS
FOR (n:Endpoint) REQUIRE (n.workspace, n.endpoint, n.model) IS UNIQUE
