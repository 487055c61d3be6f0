// The history of a key on both clocks: every version of every identity with that key, in the identity's order, with when
// it held, when it was recorded and by whom, and what ended it since. A version's successor is the next one in the order;
// a correction of the past replaces only its own period.
// Parameters: $workspace, $key; $scope, $kind (null for all).
// :param workspace => 'trip'
// :param key => 'hotel'
// :param scope => null
// :param kind => null
MATCH (i:Identity {workspace: $workspace, key: $key})
USING INDEX SEEK i:Identity(workspace, task, scope, kind, key)
WHERE i.task >= '' AND i.scope >= '' AND i.kind >= ''
  AND ($scope IS NULL OR i.scope = $scope) AND ($kind IS NULL OR i.kind = $kind)
WITH DISTINCT i.scope AS scope, i.kind AS kind, i.key AS key
MATCH (m:WorkItem {workspace: $workspace, scope: scope, kind: kind, key: key})
USING INDEX SEEK m:WorkItem(workspace, scope, kind, key, valid_from, epoch, place)
WHERE m.valid_from > -9223372036854775807 AND m.epoch >= 0 AND m.place >= 0
RETURN m.scope AS scope,
  m.kind AS kind,
  m.key AS key,
  m.id AS id,
  m.content AS content,
  m.task AS task,
  m.author AS author,
  m:Correction AS correction,
  datetime({epochMillis: 0})
    + duration({seconds: m.valid_from / 1000000, microseconds: m.valid_from % 1000000}) AS valid_from,
  CASE WHEN m.valid_to < 9223372036854775807 THEN datetime({epochMillis: 0})
    + duration({seconds: m.valid_to / 1000000, microseconds: m.valid_to % 1000000}) END AS valid_to,
  m.epoch AS epoch,
  datetime({epochMillis: 0})
    + duration({seconds: m.recorded_at / 1000000, microseconds: m.recorded_at % 1000000}) AS recorded_at,
  COLLECT {
    CALL (m) {
      MATCH (s:WorkItem {workspace: m.workspace, scope: m.scope, kind: m.kind, key: m.key})
      USING INDEX SEEK s:WorkItem(workspace, scope, kind, key, valid_from, epoch, place)
      WHERE s.valid_from >= m.valid_from AND s.epoch >= 0 AND s.place >= 0
        AND s.retired_epoch = 9223372036854775807 AND s.valid_to > s.recorded_at AND NOT m:Correction
        AND (s.valid_from > m.valid_from OR s.epoch > m.epoch OR s.epoch = m.epoch AND s.place > m.place)
      RETURN s, 'version' AS how
      ORDER BY s.workspace, s.scope, s.kind, s.key, s.valid_from, s.epoch, s.place
      LIMIT 1
      UNION
      MATCH (s:Correction {workspace: m.workspace, scope: m.scope, kind: m.kind, key: m.key})
      USING INDEX SEEK s:Correction(workspace, scope, kind, key, valid_to)
      WHERE s.valid_to > m.valid_from AND s.valid_from < m.valid_to AND s.retired_epoch = 9223372036854775807
        AND (s.epoch > m.epoch OR s.epoch = m.epoch AND s.place > m.place)
      RETURN s, 'correction' AS how
      UNION
      MATCH (m)<-[:SUPERSEDES {named: true}]-(s:WorkItem)
      WHERE s.retired_epoch = 9223372036854775807
      RETURN s, 'named' AS how
    }
    RETURN {
      id: s.id, how: how, epoch: s.epoch,
      valid_from: datetime({epochMillis: 0})
        + duration({seconds: s.valid_from / 1000000, microseconds: s.valid_from % 1000000}),
      valid_to: CASE WHEN s.valid_to < 9223372036854775807 THEN datetime({epochMillis: 0})
        + duration({seconds: s.valid_to / 1000000, microseconds: s.valid_to % 1000000}) END
    }
    ORDER BY s.valid_from, s.epoch, s.place
  } AS superseded_by,
  COLLECT {
    MATCH (m)<-[:REVOKES]-(v:Revocation)
    RETURN {
      id: v.id, code: v.code, reason: v.reason, author: v.author, epoch: v.epoch,
      withdrawn_epoch: CASE WHEN v.retired_epoch < 9223372036854775807 THEN v.retired_epoch END,
      effective_from: datetime({epochMillis: 0})
        + duration({seconds: v.effective_from / 1000000, microseconds: v.effective_from % 1000000})
    }
    ORDER BY v.epoch, v.id
  } AS revocations,
  head(COLLECT {
    MATCH (e:Epoch {workspace: m.workspace, number: m.retired_epoch})
    RETURN {
      epoch: e.number, by: m.retired_by,
      at: datetime({epochMillis: 0}) + duration({seconds: e.recorded_at / 1000000, microseconds: e.recorded_at % 1000000})
    }
  }) AS retraction,
  head(COLLECT {
    MATCH (m)<-[:ERASES]-(x:Erasure)
    WHERE x.epoch = m.erased_epoch
    MATCH (e:Epoch {workspace: x.workspace, number: x.epoch})
    RETURN {
      epoch: x.epoch, by: x.author, target: x.target, reason: x.reason,
      at: datetime({epochMillis: 0}) + duration({seconds: e.recorded_at / 1000000, microseconds: e.recorded_at % 1000000})
    }
    LIMIT 1
  }) AS erasure
ORDER BY scope, kind, key, m.valid_from, m.epoch, m.place
