// One node a workspace.
CREATE CONSTRAINT tracegraph_workspace IF NOT EXISTS
FOR (n:Workspace) REQUIRE (n.id) IS UNIQUE
