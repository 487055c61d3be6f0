// The versions of an identity in their order: the current one is one seek away.
CREATE INDEX tracegraph_item_identity IF NOT EXISTS
FOR (n:WorkItem) ON (n.workspace, n.scope, n.kind, n.key, n.valid_from, n.epoch, n.place)
