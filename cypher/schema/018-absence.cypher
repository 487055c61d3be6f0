// The last departure of a principal in a role and a task.
CREATE INDEX tracegraph_absence IF NOT EXISTS
FOR (n:Checkpoint) ON (n.workspace, n.principal, n.role, n.task, n.epoch)
