// What was recorded in an absence.
CREATE INDEX tracegraph_item_epoch IF NOT EXISTS
FOR (n:WorkItem) ON (n.workspace, n.epoch)
