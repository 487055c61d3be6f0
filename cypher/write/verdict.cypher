// Writes a verifier's answers as edges from the later item to the earlier one.
// Parameters: $workspace, $epoch, $recorded_at, $author, $verdicts (maps: later, earlier, type (PROPOSED, INVALIDATES,
// CLEARED, UNVERIFIED or RESTORES), effective_from (null: the later item's valid_from) and edge properties).
// Plan: cartesian product of two single rows a verdict, the later and the earlier item; eager, all are found before one is
// written.
UNWIND $verdicts AS row
MATCH (later:WorkItem {workspace: $workspace, id: row.later})
MATCH (earlier:WorkItem {workspace: $workspace, id: row.earlier})
CREATE (later)-[v:$(row.type)]->(earlier)
SET v = row.edge, v.workspace = $workspace, v.epoch = $epoch, v.retired_epoch = 9223372036854775807,
  v.recorded_at = $recorded_at, v.author = $author,
  v.effective_from = coalesce(row.effective_from, later.valid_from)
