// Named evidence that obligations require and items support.
CREATE CONSTRAINT tracegraph_dependency IF NOT EXISTS
FOR (n:Dependency) REQUIRE (n.workspace, n.id) IS UNIQUE
