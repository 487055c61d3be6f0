// 8 visible: what a principal could see at a past moment
// The items whose scope some role of its was granted and not denied then, that rest on no source it could not read, and that
// were current and neither ended nor revoked, as far as was known by then; with the roles and scopes that opened them.
// `roles` says by which role; without a principal, any role counts. Premises and verdicts are `why`'s.
// Parameters: $workspace, $at (a datetime, or its text); $role, $principal (either may be null).
// :param workspace => 'trip'
// :param at => datetime('2026-05-02T00:00:00Z')
// :param role => null
// :param principal => 'A1'
WITH datetime($at).epochSeconds * 1000000 + datetime($at).microsecond AS at
CALL (at) {
  MATCH (e:Epoch {workspace: $workspace})
  WHERE e.recorded_at <= at
  RETURN max(e.number) AS known
}
WITH at, coalesce(known, 0) AS known
MATCH (role:Role {workspace: $workspace})
WHERE ($role IS NULL OR role.id = $role) AND ($principal IS NULL OR EXISTS {
  MATCH (:Principal {workspace: $workspace, id: $principal})-[held:HOLDS]->(role)
  WHERE held.epoch <= known < held.retired_epoch AND held.valid_from <= at < held.valid_to
})
WITH at, known, role, COLLECT {
  MATCH (role)-[grant:MAY_READ]->(scope:Scope)
  WHERE grant.epoch <= known < grant.retired_epoch AND grant.valid_from <= at < grant.valid_to
    AND NOT EXISTS {
      MATCH (role)-[denial:DENIED_READ]->(scope)
      WHERE denial.epoch <= known < denial.retired_epoch AND denial.valid_from <= at < denial.valid_to
    }
  RETURN DISTINCT scope.id
} AS readable
UNWIND readable AS scope
MATCH (m:WorkItem {workspace: $workspace, scope: scope})
USING INDEX SEEK m:WorkItem(workspace, epoch)
WHERE m.epoch <= known AND m.retired_epoch > known AND m.valid_from <= at < m.valid_to AND m.erased_epoch IS NULL
  AND NOT EXISTS {
    MATCH (m)<-[:REVOKES]-(v:Revocation)
    WHERE v.epoch <= known < v.retired_epoch AND v.effective_from <= at
  }
  AND NOT EXISTS {
    MATCH (m)<-[:SUPERSEDES {named: true}]-(other:WorkItem)
    WHERE other.epoch <= known < other.retired_epoch AND other.valid_from <= at
  }
CALL (m, at, known) {
  OPTIONAL MATCH (r:WorkItem {workspace: m.workspace, scope: m.scope, kind: m.kind, key: m.key})
  USING INDEX SEEK r:WorkItem(workspace, scope, kind, key, valid_from, epoch, place)
  WHERE r.valid_from <= at AND r.epoch <= known < r.retired_epoch AND r.place >= 0 AND r.valid_to > r.recorded_at
  RETURN r AS regular
  ORDER BY r.workspace DESC, r.scope DESC, r.kind DESC, r.key DESC, r.valid_from DESC, r.epoch DESC, r.place DESC
  LIMIT 1
}
CALL (m, at, known, regular) {
  OPTIONAL MATCH (c:Correction {workspace: m.workspace, scope: m.scope, kind: m.kind, key: m.key})
  USING INDEX SEEK c:Correction(workspace, scope, kind, key, valid_to)
  WHERE c.valid_from <= at < c.valid_to AND c.epoch <= known < c.retired_epoch
    AND (regular IS NULL OR c.epoch > regular.epoch OR c.epoch = regular.epoch AND c.place > regular.place)
  RETURN c AS correction
  ORDER BY c.epoch DESC, c.place DESC
  LIMIT 1
}
WITH m, role, readable
WHERE coalesce(correction, regular) = m AND NOT EXISTS {
  MATCH ANY (m)-[:DERIVED_FROM]->+(s:WorkItem WHERE NOT s.scope IN readable)
}
RETURN m.scope AS scope,
  m.kind AS kind,
  m.key AS key,
  m.id AS id,
  m.content AS content,
  m.task AS task,
  m.author AS author,
  datetime({epochMillis: 0})
    + duration({seconds: m.valid_from / 1000000, microseconds: m.valid_from % 1000000}) AS valid_from,
  CASE WHEN m.valid_to < 9223372036854775807 THEN datetime({epochMillis: 0})
    + duration({seconds: m.valid_to / 1000000, microseconds: m.valid_to % 1000000}) END AS valid_to,
  m.epoch AS epoch,
  collect(DISTINCT role.id) AS roles,
  m AS item,
  collect(DISTINCT role) AS through,
  head(COLLECT { MATCH (s:Scope {workspace: $workspace, id: m.scope}) RETURN s }) AS within,
  head(COLLECT { MATCH (p:Principal {workspace: $workspace, id: $principal}) RETURN p }) AS who
ORDER BY scope, kind, key, id
