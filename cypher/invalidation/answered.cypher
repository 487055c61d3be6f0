// How the pairs of earlier items were answered: each pair's answers in order.
// Parameters: $workspace, $ids (earlier items), $task.
UNWIND $ids AS id
MATCH (e:WorkItem {workspace: $workspace, id: id})<-[v:INVALIDATES|CLEARED|UNVERIFIED|RESTORES|PROPOSED]-(l:WorkItem)
WHERE (v.task IS NULL OR v.task = $task) AND v.retired_epoch = 9223372036854775807
  AND l.retired_epoch = 9223372036854775807
WITH e, l, v ORDER BY v.epoch
WITH e, l, last(collect(v)) AS v
RETURN type(v) AS type, count(*) AS pairs
