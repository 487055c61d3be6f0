// One process at a time works on what a claim names.
CREATE CONSTRAINT tracegraph_claim IF NOT EXISTS
FOR (n:Claim) REQUIRE (n.workspace, n.id) IS UNIQUE
