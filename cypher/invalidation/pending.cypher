// Pairs that were proposed, or asked in vain, and not answered since; none of which an item was erased, which nobody can judge.
// Parameters: $workspace, $ids (earlier items), $task.
// Returns [later, earlier, id of the edge, cause].
UNWIND $ids AS id
MATCH (e:WorkItem {workspace: $workspace, id: id})<-[v:PROPOSED|UNVERIFIED]-(l:WorkItem)
WHERE v.retired_epoch = 9223372036854775807 AND l.erased_epoch IS NULL AND e.erased_epoch IS NULL
  AND (v.task IS NULL OR v.task = $task OR v.task = e.task OR v.task = l.task)
  AND NOT EXISTS {
    MATCH (e)<-[answer:INVALIDATES|CLEARED|RESTORES]-(l)
    WHERE answer.retired_epoch = 9223372036854775807 AND answer.epoch > v.epoch
      AND (answer.task IS NULL OR answer.task = $task)
  }
RETURN collect([l.id, e.id, v.id, v.cause]) AS pending
