// What items were invalidated by, with each verdict still in force, and what was recorded in the place of the item behind
// it: the versions after it are found by the gates, the ones that name it here.
// Parameters: $workspace, $ids (earlier items), $task, $epoch, $valid_at (microseconds).
// Returns [earlier, later, whether the later was retracted, ids that supersede the later by name, the verdict's epoch].
UNWIND $ids AS id
MATCH (e:WorkItem {workspace: $workspace, id: id})<-[v:INVALIDATES]-(l:WorkItem)
WHERE (v.task IS NULL OR v.task = $task)
  AND v.epoch <= $epoch < v.retired_epoch AND v.effective_from <= $valid_at
  AND NOT EXISTS {
    MATCH (e)<-[answer:RESTORES]-(r:WorkItem)
    WHERE (answer.task IS NULL OR answer.task = $task)
      AND v.epoch < answer.epoch AND answer.epoch <= $epoch < answer.retired_epoch
      AND r.retired_epoch > $epoch AND answer.effective_from <= $valid_at
  }
RETURN collect([
  e.id, l.id, l.retired_epoch <= $epoch,
  COLLECT {
    MATCH (l)<-[:SUPERSEDES {named: true}]-(s:WorkItem)
    WHERE s.epoch <= $epoch < s.retired_epoch AND s.valid_from <= $valid_at
    RETURN s.id
  },
  v.epoch
]) AS rows
