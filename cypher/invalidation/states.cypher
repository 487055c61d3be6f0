// How the pairs of earlier items stand: the last edge of each for this task or every task.
// Parameters: $workspace, $ids (earlier items), $task.
// Returns [later, earlier, type of the edge].
UNWIND $ids AS id
MATCH (e:WorkItem {workspace: $workspace, id: id})<-[v:PROPOSED|INVALIDATES|CLEARED|UNVERIFIED|RESTORES]-(l:WorkItem)
WHERE (v.task IS NULL OR v.task = $task OR v.task = e.task OR v.task = l.task)
  AND v.retired_epoch = 9223372036854775807
  AND l.retired_epoch = 9223372036854775807
WITH e, l, v ORDER BY v.epoch
WITH e, l, last(collect(type(v))) AS type
RETURN collect([l.id, e.id, type]) AS states
