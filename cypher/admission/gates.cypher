// The four gates and the size limit: every reason that speaks against each item on its own evidence, and what the item
// rests on. Reasons that depend on other items' answers (premise_invalid, source_not_readable, missing_receipt of a
// derived item) follow from these rows, level by level.
// Parameters: $workspace, $ids; $valid_at and $epoch (the return's clocks); $now and $latest (the clocks of authorization);
// $role, $task, $purpose (null when none is given); $kinds, $max_item_chars, $unverified (of the policy).
// Times in microseconds since 1970 UTC; 9223372036854775807 is an open end.
// Returns lists of at most 500 rows: id, reasons, current version's id, content_digest, premises, sources, kind, length,
// valid_from, epoch, place, task, receipts, supports, requires, obligation.
OPTIONAL MATCH (:Role {workspace: $workspace, id: $role})-[grant:MAY_READ|DENIED_READ]->(scope:Scope)
WHERE grant.epoch <= $latest < grant.retired_epoch AND grant.valid_from <= $now < grant.valid_to
WITH collect(CASE WHEN type(grant) = 'MAY_READ' THEN scope.id END) AS granted,
  collect(CASE WHEN type(grant) = 'DENIED_READ' THEN scope.id END) AS denied
UNWIND $ids AS id
MATCH (m:WorkItem {workspace: $workspace, id: id})
CALL (m) {
  OPTIONAL MATCH (r:WorkItem {workspace: m.workspace, scope: m.scope, kind: m.kind, key: m.key})
  USING INDEX SEEK r:WorkItem(workspace, scope, kind, key, valid_from, epoch, place)
  WHERE r.valid_from <= $valid_at AND r.epoch <= $epoch < r.retired_epoch AND r.place >= 0
    AND r.valid_to > r.recorded_at
  RETURN r AS regular
  ORDER BY r.workspace DESC, r.scope DESC, r.kind DESC, r.key DESC, r.valid_from DESC, r.epoch DESC, r.place DESC
  LIMIT 1
}
CALL (m, regular) {
  OPTIONAL MATCH (c:Correction {workspace: m.workspace, scope: m.scope, kind: m.kind, key: m.key})
  USING INDEX SEEK c:Correction(workspace, scope, kind, key, valid_to)
  WHERE c.valid_from <= $valid_at < c.valid_to AND c.epoch <= $epoch < c.retired_epoch
    AND (regular IS NULL OR c.epoch > regular.epoch OR c.epoch = regular.epoch AND c.place > regular.place)
  RETURN c AS correction
  ORDER BY c.epoch DESC, c.place DESC
  LIMIT 1
}
WITH m, granted, denied, coalesce(correction, regular).id AS current,
  m.kind IN ['fact', 'constraint'] AS evidence,
  COUNT { (m)-[:BOUND_TO]->(:Receipt) } AS receipts
WITH m, current, receipts, [reason IN [
  // authorization
  CASE WHEN NOT m.scope IN granted THEN 'scope_not_granted' END,
  CASE WHEN m.scope IN denied THEN 'denied' END,
  // temporal
  CASE WHEN $valid_at < m.valid_from THEN 'not_yet_valid' END,
  CASE WHEN m.valid_to <= $valid_at THEN 'expired' END,
  CASE WHEN m.valid_from <= $valid_at AND m.retired_epoch > $epoch AND (
    current <> m.id OR EXISTS {
      MATCH (m)<-[:SUPERSEDES {named: true}]-(other:WorkItem)
      WHERE other.epoch <= $epoch < other.retired_epoch AND other.valid_from <= $valid_at
    }
  ) THEN 'superseded' END,
  CASE WHEN EXISTS {
    MATCH (m)<-[:REVOKES]-(v:Revocation)
    WHERE v.code <> 'resolved' AND v.epoch <= $epoch < v.retired_epoch AND v.effective_from <= $valid_at
  } THEN 'revoked' END,
  CASE WHEN EXISTS {
    MATCH (m)<-[:REVOKES]-(v:Revocation)
    WHERE v.code = 'resolved' AND v.epoch <= $epoch < v.retired_epoch AND v.effective_from <= $valid_at
  } THEN 'resolved' END,
  CASE WHEN m.retired_epoch <= $epoch THEN 'retracted' END,
  CASE WHEN EXISTS {
    MATCH (m)<-[verdict:INVALIDATES]-(later:WorkItem)
    WHERE (verdict.task IS NULL OR verdict.task = $task)
      AND verdict.epoch <= $epoch < verdict.retired_epoch AND later.retired_epoch > $epoch
      AND verdict.effective_from <= $valid_at
      AND NOT EXISTS {
        MATCH (m)<-[answer:RESTORES]-(restorer:WorkItem)
        WHERE (answer.task IS NULL OR answer.task = $task)
          AND verdict.epoch < answer.epoch AND answer.epoch <= $epoch < answer.retired_epoch
          AND restorer.retired_epoch > $epoch AND answer.effective_from <= $valid_at
      }
  } THEN 'invalidated' END,
  CASE WHEN m.erased_epoch IS NOT NULL THEN 'erased' END,
  CASE WHEN $unverified AND EXISTS {
    MATCH (m)<-[asked:PROPOSED|UNVERIFIED]-(later:WorkItem)
    WHERE (asked.task IS NULL OR asked.task = $task)
      AND asked.epoch <= $epoch < asked.retired_epoch
      AND later.retired_epoch > $epoch AND later.valid_from <= $valid_at
      AND NOT EXISTS {
        MATCH (m)<-[answer:INVALIDATES|CLEARED|RESTORES]-(later)
        WHERE (answer.task IS NULL OR answer.task = $task)
          AND asked.epoch < answer.epoch AND answer.epoch <= $epoch < answer.retired_epoch
      }
  } THEN 'unverified' END,
  // applicability
  CASE WHEN m.task <> $task THEN 'wrong_task' END,
  CASE WHEN size(m.purposes) > 0 AND NOT coalesce($purpose IN m.purposes, false) THEN 'wrong_purpose' END,
  CASE WHEN evidence AND NOT m.kind IN $kinds THEN 'kind_not_allowed' END,
  CASE WHEN m.role <> $role THEN 'wrong_role' END,
  // provenance
  CASE WHEN evidence AND receipts = 0 AND NOT EXISTS { (m)-[:DERIVED_FROM]->() } THEN 'missing_receipt' END,
  CASE WHEN EXISTS {
    MATCH (m)-[binding:BOUND_TO]->(r:Receipt)
    WHERE binding.sha256 <> r.sha256
  } THEN 'receipt_mismatch' END,
  CASE WHEN evidence AND receipts > 0 AND NOT EXISTS {
    MATCH (m)-[:BOUND_TO]->(r:Receipt)
    WHERE r.retired_epoch > $epoch AND NOT EXISTS {
      MATCH (r)<-[:REVOKES]-(v:Revocation)
      WHERE v.epoch <= $epoch < v.retired_epoch AND v.effective_from <= $valid_at
    }
  } THEN 'receipt_revoked' END,
  CASE WHEN EXISTS {
    MATCH (m)-[claim:SUPPORTS]->(:Dependency)
    WHERE claim.receipt IS NOT NULL AND NOT EXISTS {
      MATCH (m)-[:BOUND_TO]->(r:Receipt {id: claim.receipt})
      WHERE r.retired_epoch > $epoch AND NOT EXISTS {
        MATCH (r)<-[:REVOKES]-(v:Revocation)
        WHERE v.epoch <= $epoch < v.retired_epoch AND v.effective_from <= $valid_at
      }
    }
  } OR evidence AND receipts = 0 AND EXISTS {
    MATCH (m)-[:SUPPORTS]->(d:Dependency)
    WHERE NOT EXISTS { (m)-[:DERIVED_FROM]->(:WorkItem)-[:SUPPORTS]->(d) }
  } THEN 'unbound_support' END,
  // size
  CASE WHEN m.length > $max_item_chars THEN 'over_item_budget' END
] WHERE reason IS NOT NULL] AS reasons
WITH collect([
  m.id, reasons, current, m.content_digest,
  COLLECT { MATCH (m)-[:DEPENDS_ON|DERIVED_FROM]->(p:WorkItem) RETURN DISTINCT p.id },
  COLLECT { MATCH (m)-[:DERIVED_FROM]->(s:WorkItem) RETURN DISTINCT s.id },
  m.kind, m.length, m.valid_from, m.epoch, m.place, m.task, receipts,
  COLLECT { MATCH (m)-[:SUPPORTS]->(d:Dependency) RETURN DISTINCT d.id },
  COLLECT { MATCH (m)-[need:REQUIRES]->(d:Dependency) RETURN [d.id, need.critical] },
  head(COLLECT { MATCH (m)-[:FRONTIER_OF]->(o:WorkItem) RETURN o.id })
]) AS rows
UNWIND range(0, size(rows) - 1, 500) AS start
RETURN rows[start..start + 500] AS rows
