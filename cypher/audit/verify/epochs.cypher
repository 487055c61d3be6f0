// Some epochs of the commit log, in order.
// Parameters: $workspace, $after, $until (epochs; the first is excluded).
MATCH (e:Epoch {workspace: $workspace})
WHERE $after < e.number <= $until
WITH e
ORDER BY e.workspace, e.number
RETURN collect(e {
  .number, .batch_id, .author, .recorded_at, .previous, .digest, .records, .subjects, .request, .ids
}) AS epochs
