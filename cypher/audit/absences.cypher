// Who is away, since when: every open departure, with how much has been recorded since and the returns tried so far.
// Parameters: $workspace.
// :param workspace => 'trip'
MATCH (w:Workspace {id: $workspace})
MATCH (c:Checkpoint {workspace: $workspace})
WHERE c.id >= ''
WITH w, c
ORDER BY c.epoch DESC
WITH w, c.principal AS principal, c.role AS role, c.task AS task, head(collect(c)) AS c
WHERE NOT EXISTS {
  MATCH (c)<-[:RETURNED_FROM]-(k:ReturnCycle)
  WHERE k.decision IN ['admitted', 'reset'] AND NOT k.preview
}
RETURN principal,
  role,
  task,
  c.id AS checkpoint,
  c.epoch AS epoch,
  datetime({epochMillis: 0})
    + duration({seconds: c.recorded_at / 1000000, microseconds: c.recorded_at % 1000000}) AS away_since,
  datetime({epochMillis: 0})
    + duration({seconds: c.expires_at / 1000000, microseconds: c.expires_at % 1000000}) AS ticket_expires,
  size(c.item_ids) AS items,
  w.epoch - c.epoch AS epochs_missed,
  COLLECT {
    MATCH (c)<-[:RETURNED_FROM]-(k:ReturnCycle)
    RETURN {
      cycle: k.id, decision: k.decision, reason: k.reason, preview: k.preview,
      at: datetime({epochMillis: 0})
        + duration({seconds: k.authorized_at / 1000000, microseconds: k.authorized_at % 1000000})
    }
    ORDER BY k.authorized_at
  } AS returns
ORDER BY away_since, principal, role, task
