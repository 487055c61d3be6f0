// What a batch refers to, as it is now: its authors with the roles they hold and the scopes they may write, items,
// receipts, experiences and things that can be withdrawn.
// Parameters: $workspace, $now (microseconds), $batch: a map of authors, items, receipts, experiences, withdrawals and
// quoted (lists of ids; quoted: the items whose words a verdict quotes; each text comes with the items it belongs to).
RETURN COLLECT {
    UNWIND $batch.authors AS id
    MATCH (author:Principal {workspace: $workspace, id: id})
    RETURN {
      id: id,
      roles: COLLECT {
        MATCH (author)-[held:HOLDS]->(role:Role)
        WHERE held.retired_epoch = 9223372036854775807 AND held.valid_from <= $now < held.valid_to
        RETURN DISTINCT role.id
      },
      writable: COLLECT {
        MATCH (author)-[held:HOLDS]->(role:Role)-[grant:MAY_WRITE]->(scope:Scope)
        WHERE held.retired_epoch = 9223372036854775807 AND held.valid_from <= $now < held.valid_to
          AND grant.retired_epoch = 9223372036854775807 AND grant.valid_from <= $now < grant.valid_to
          AND NOT EXISTS {
            MATCH (role)-[denial:DENIED_WRITE]->(scope)
            WHERE denial.retired_epoch = 9223372036854775807 AND denial.valid_from <= $now < denial.valid_to
          }
        RETURN DISTINCT scope.id
      }
    }
  } AS authors,
  COLLECT {
    UNWIND $batch.items AS id
    MATCH (m:WorkItem {workspace: $workspace, id: id})
    RETURN m {
      .id, .key, .kind, .scope, .task, .role, .purposes, .valid_from, .epoch, .retired_epoch,
      erased: m.erased_epoch IS NOT NULL
    }
  } AS items,
  COLLECT {
    UNWIND $batch.receipts AS id
    MATCH (r:Receipt {workspace: $workspace, id: id})
    RETURN r {
      .id, .sha256, .retired_epoch,
      scopes: COLLECT { MATCH (r)<-[:BOUND_TO]-(m:WorkItem) RETURN DISTINCT m.scope }
    }
  } AS receipts,
  COLLECT {
    UNWIND $batch.experiences AS id
    MATCH (x:Experience {workspace: $workspace, id: id})
    RETURN x.id
  } AS experiences,
  COLLECT {
    UNWIND $batch.quoted AS id
    MATCH (m:WorkItem {workspace: $workspace, id: id})
    RETURN {
      id: id,
      texts: [{text: m.content, items: [m.id]}] + COLLECT {
        MATCH (m)-[:BOUND_TO]->(r:Receipt)
        WHERE r.text IS NOT NULL
        RETURN DISTINCT {text: r.text, items: COLLECT { MATCH (r)<-[:BOUND_TO]-(bound:WorkItem) RETURN bound.id }}
      }
    }
  } AS quoted,
  COLLECT {
    UNWIND $batch.withdrawals AS id
    CALL (id) {
      MATCH ()-[r:HOLDS {workspace: $workspace, id: id}]->() USING INDEX SEEK r:HOLDS(workspace, id) RETURN 'grant' AS what, r.retired_epoch AS retired, null AS scope
      UNION ALL
      MATCH ()-[r:MAY_READ {workspace: $workspace, id: id}]->() USING INDEX SEEK r:MAY_READ(workspace, id) RETURN 'grant' AS what, r.retired_epoch AS retired, null AS scope
      UNION ALL
      MATCH ()-[r:MAY_WRITE {workspace: $workspace, id: id}]->() USING INDEX SEEK r:MAY_WRITE(workspace, id) RETURN 'grant' AS what, r.retired_epoch AS retired, null AS scope
      UNION ALL
      MATCH ()-[r:DENIED_READ {workspace: $workspace, id: id}]->() USING INDEX SEEK r:DENIED_READ(workspace, id) RETURN 'grant' AS what, r.retired_epoch AS retired, null AS scope
      UNION ALL
      MATCH ()-[r:DENIED_WRITE {workspace: $workspace, id: id}]->() USING INDEX SEEK r:DENIED_WRITE(workspace, id) RETURN 'grant' AS what, r.retired_epoch AS retired, null AS scope
      UNION ALL
      MATCH (v:Revocation {workspace: $workspace, id: id})-[:REVOKES]->(m:WorkItem) RETURN 'revocation' AS what, v.retired_epoch AS retired, m.scope AS scope
      UNION ALL
      MATCH (v:Revocation {workspace: $workspace, id: id})-[:REVOKES]->(:Receipt)<-[:BOUND_TO]-(m:WorkItem) RETURN 'revocation' AS what, v.retired_epoch AS retired, m.scope AS scope
      UNION ALL
      MATCH ()-[r:PROPOSED {workspace: $workspace, id: id}]->(m) USING INDEX SEEK r:PROPOSED(workspace, id) RETURN 'verdict' AS what, r.retired_epoch AS retired, m.scope AS scope
      UNION ALL
      MATCH ()-[r:INVALIDATES {workspace: $workspace, id: id}]->(m) USING INDEX SEEK r:INVALIDATES(workspace, id) RETURN 'verdict' AS what, r.retired_epoch AS retired, m.scope AS scope
      UNION ALL
      MATCH ()-[r:CLEARED {workspace: $workspace, id: id}]->(m) USING INDEX SEEK r:CLEARED(workspace, id) RETURN 'verdict' AS what, r.retired_epoch AS retired, m.scope AS scope
      UNION ALL
      MATCH ()-[r:UNVERIFIED {workspace: $workspace, id: id}]->(m) USING INDEX SEEK r:UNVERIFIED(workspace, id) RETURN 'verdict' AS what, r.retired_epoch AS retired, m.scope AS scope
      UNION ALL
      MATCH ()-[r:RESTORES {workspace: $workspace, id: id}]->(m) USING INDEX SEEK r:RESTORES(workspace, id) RETURN 'verdict' AS what, r.retired_epoch AS retired, m.scope AS scope
    }
    RETURN {id: id, what: what, retired: retired, scope: scope}
  } AS withdrawals
