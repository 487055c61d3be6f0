// Finished sweeps, the last one first.
CREATE INDEX tracegraph_sweep IF NOT EXISTS
FOR (n:Sweep) ON (n.workspace, n.task, n.method, n.epoch)
