// The words by which premises and changes meet.
CREATE CONSTRAINT tracegraph_topic IF NOT EXISTS
FOR (n:Topic) REQUIRE (n.workspace, n.id) IS UNIQUE
