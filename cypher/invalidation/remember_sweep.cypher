// Notes a finished sweep: what it was up to date with, and what it cost.
// Parameters: $workspace, $task ('' for no task), $method, $epoch, $valid_at (microseconds), $pairs, $usage (maps of counts).
CREATE (s:Sweep {workspace: $workspace, task: $task, method: $method, epoch: $epoch, valid_at: $valid_at})
SET s += $pairs, s += $usage
