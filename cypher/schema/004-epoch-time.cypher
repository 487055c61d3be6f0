// Maps a wall time to the last epoch recorded by then.
CREATE INDEX tracegraph_epoch_time IF NOT EXISTS
FOR (n:Epoch) ON (n.workspace, n.recorded_at, n.number)
