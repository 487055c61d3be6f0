// One node for each identity and task, so that what is current is found without reading history.
CREATE CONSTRAINT tracegraph_identity IF NOT EXISTS
FOR (n:Identity) REQUIRE (n.workspace, n.task, n.scope, n.kind, n.key) IS UNIQUE
