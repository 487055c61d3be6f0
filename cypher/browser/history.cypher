// 5 history: of an item's key, on both clocks
// Every version in its order, and what replaced it, revoked it or erased it. The drawing shows what followed what; the table
// when each version held in the world, and when that was recorded.
// Parameters: $workspace, $item (any version).
// :param workspace => 'trip'
// :param item => 'h0'
MATCH (one:WorkItem {workspace: $workspace, id: $item})
MATCH (m:WorkItem {workspace: $workspace, scope: one.scope, kind: one.kind, key: one.key})
USING INDEX SEEK m:WorkItem(workspace, scope, kind, key, valid_from, epoch, place)
WHERE m.valid_from > -9223372036854775807 AND m.epoch >= 0 AND m.place >= 0
RETURN m.id AS id,
  m.content AS content,
  datetime({epochMillis: 0})
    + duration({seconds: m.valid_from / 1000000, microseconds: m.valid_from % 1000000}) AS valid_from,
  CASE WHEN m.valid_to < 9223372036854775807 THEN datetime({epochMillis: 0})
    + duration({seconds: m.valid_to / 1000000, microseconds: m.valid_to % 1000000}) END AS valid_to,
  m.epoch AS epoch,
  datetime({epochMillis: 0})
    + duration({seconds: m.recorded_at / 1000000, microseconds: m.recorded_at % 1000000}) AS recorded_at,
  CASE WHEN m.retired_epoch < 9223372036854775807 THEN m.retired_epoch END AS retracted_epoch,
  m.author AS author,
  m AS version,
  COLLECT {
    MATCH path = (m)<-[:SUPERSEDES|REVOKES|ERASES]-(by)
    WHERE coalesce(by.retired_epoch, 9223372036854775807) = 9223372036854775807
    RETURN path
  } AS ended_by
ORDER BY m.valid_from, m.epoch, m.place
