// 2 why: an item came out of a return as it did
// The return, the item, and the evidence in the graph for each recorded reason, as known to that return. `reasons` are the
// gates'; an item with none passed them. `issued_view` is the view that the return got: it shows the item only if ADMITS
// says so. An item that nothing joins to the return was outside its pool: the table of cypher/audit/why.cypher says why.
// Parameters: $workspace, $cycle, $item.
// :param workspace => 'trip'
// :param cycle => 'cycle-1'
// :param item => 'p0'
MATCH (k:ReturnCycle {workspace: $workspace, id: $cycle})
MATCH (m:WorkItem {workspace: $workspace, id: $item})
OPTIONAL MATCH kept_out = (k)-[rejected:REJECTED]->(m)
OPTIONAL MATCH issued = (k)-[:ISSUED]->(view:ReturnView)
OPTIONAL MATCH shown = (view)-[:ADMITS]->(m)
WITH *, coalesce(rejected.reasons, []) AS reasons,
  COLLECT {
    MATCH (m)<-[verdict:INVALIDATES]-(later:WorkItem)
    WHERE (verdict.task IS NULL OR verdict.task = k.task)
      AND verdict.epoch <= k.epoch < verdict.retired_epoch AND later.retired_epoch > k.epoch
      AND verdict.effective_from <= k.valid_at
      AND NOT EXISTS {
        MATCH (m)<-[answer:RESTORES]-(restorer:WorkItem)
        WHERE (answer.task IS NULL OR answer.task = k.task)
          AND verdict.epoch < answer.epoch AND answer.epoch <= k.epoch < answer.retired_epoch
          AND restorer.retired_epoch > k.epoch AND answer.effective_from <= k.valid_at
      }
    RETURN verdict
  } AS verdicts
RETURN reasons,
  rejected.gates AS gates,
  [verdict IN verdicts | {
    later: startNode(verdict).id, quote: verdict.quote, rationale: verdict.rationale, judged_by: verdict.author
  }] AS verdicts,
  k.decision AS decision,
  view.jti AS issued_view,
  k AS return,
  m AS item,
  kept_out,
  issued,
  shown,
  COLLECT {
    CALL (k, m, reasons, verdicts) {
      // temporal
      WITH m WHERE 'superseded' IN reasons
      MATCH path = (m)<-[links:SUPERSEDES]-{1,4}(:WorkItem)
      WHERE all(link IN links WHERE link.epoch <= k.epoch)
      RETURN path
      UNION
      WITH m WHERE 'invalidated' IN reasons
      MATCH path = (m)<-[verdict:INVALIDATES]-(:WorkItem)
      WHERE verdict IN verdicts
      RETURN path
      UNION
      WITH m WHERE 'invalidated' IN reasons
      MATCH path = (m)<-[verdict:INVALIDATES]-(:WorkItem)-[link:SUPERSEDES|BOUND_TO]->()
      WHERE verdict IN verdicts AND link.epoch <= k.epoch
      RETURN path
      UNION
      WITH m WHERE 'unverified' IN reasons
      MATCH path = (m)<-[asked:PROPOSED|UNVERIFIED]-(:WorkItem)
      WHERE asked.epoch <= k.epoch < asked.retired_epoch
      RETURN path
      UNION
      WITH m WHERE 'revoked' IN reasons OR 'resolved' IN reasons
      MATCH path = (m)<-[:REVOKES]-(ended:Revocation)
      WHERE ended.epoch <= k.epoch < ended.retired_epoch
      RETURN path
      UNION
      WITH m WHERE 'erased' IN reasons
      MATCH path = (m)<-[:ERASES]-(:Erasure)
      RETURN path
      UNION
      WITH m WHERE 'premise_invalid' IN reasons
      MATCH path = (m)-[:DEPENDS_ON|DERIVED_FROM|FRONTIER_OF]->{1,4}(:WorkItem)<-[against:SUPERSEDES|INVALIDATES|REVOKES]-(by)
      WHERE coalesce(against.epoch, by.epoch) <= k.epoch < coalesce(against.retired_epoch, by.retired_epoch)
      RETURN path
      ORDER BY length(path)
      LIMIT 25
      UNION
      WITH m WHERE 'premise_invalid' IN reasons
      MATCH path = (m)-[:DEPENDS_ON|DERIVED_FROM|FRONTIER_OF]->(:WorkItem)
      RETURN path
      UNION
      // authorization
      WITH m WHERE 'scope_not_granted' IN reasons OR 'denied' IN reasons
      MATCH path = (:Role {workspace: k.workspace, id: k.role})-[may:MAY_READ|DENIED_READ]->(:Scope)
      WHERE may.epoch <= k.authorized_epoch < may.retired_epoch
        AND may.valid_from <= k.authorized_at < may.valid_to
      RETURN path
      UNION
      WITH m WHERE 'scope_not_granted' IN reasons OR 'denied' IN reasons
      MATCH path = (:Scope {workspace: k.workspace, id: m.scope})
      RETURN path
      UNION
      WITH m WHERE 'source_not_readable' IN reasons
      MATCH path = (m)-[:DERIVED_FROM]->{1,4}(source:WorkItem)
      WHERE source.scope <> m.scope
      RETURN path
      ORDER BY length(path)
      LIMIT 25
      UNION
      // provenance
      WITH m WHERE any(reason IN reasons WHERE reason IN ['receipt_mismatch', 'receipt_revoked', 'unbound_support'])
      MATCH path = (m)-[:BOUND_TO]->(:Receipt)
      RETURN path
      UNION
      WITH m WHERE 'receipt_revoked' IN reasons OR 'unbound_support' IN reasons
      MATCH path = (m)-[:BOUND_TO]->(:Receipt)<-[:REVOKES]-(ended:Revocation)
      WHERE ended.epoch <= k.epoch < ended.retired_epoch
      RETURN path
      UNION
      WITH m WHERE 'unbound_support' IN reasons
      MATCH path = (m)-[:SUPPORTS]->(:Dependency)
      RETURN path
      UNION
      WITH m WHERE 'missing_receipt' IN reasons
      MATCH path = (m)-[:DERIVED_FROM]->(:WorkItem)
      RETURN path
    }
    RETURN path
  } AS evidence
