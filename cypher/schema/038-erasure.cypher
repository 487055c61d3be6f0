// What was erased, and why; an item is erased once.
CREATE CONSTRAINT tracegraph_erasure IF NOT EXISTS
FOR (n:Erasure) REQUIRE (n.workspace, n.target) IS UNIQUE
