// Return Views by their token id.
CREATE CONSTRAINT tracegraph_view IF NOT EXISTS
FOR (n:ReturnView) REQUIRE (n.workspace, n.jti) IS UNIQUE
