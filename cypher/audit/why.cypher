// Why one item came out of one return as it did: each gate's outcome with its evidence, at the return's own clocks. The
// reasons are those recorded with the decision; what stands beside them is the evidence in the graph. For an item outside
// the pool: that it was, and why. Premises are walked level by level through the version that holds each one's place, to
// the nearest that fails.
// Parameters: $workspace, $cycle, $item.
// :param workspace => 'trip'
// :param cycle => 'cycle-1'
// :param item => 'p0'
MATCH (k:ReturnCycle {workspace: $workspace, id: $cycle})
MATCH (m:WorkItem {workspace: $workspace, id: $item})
OPTIONAL MATCH (k)-[rejected:REJECTED]->(m)
OPTIONAL MATCH (k)-[:ISSUED]->(view:ReturnView)
OPTIONAL MATCH (view)-[admits:ADMITS]->(m)
CALL (k, m) {
  OPTIONAL MATCH (r:WorkItem {workspace: m.workspace, scope: m.scope, kind: m.kind, key: m.key})
  USING INDEX SEEK r:WorkItem(workspace, scope, kind, key, valid_from, epoch, place)
  WHERE r.valid_from <= k.valid_at AND r.epoch <= k.epoch < r.retired_epoch AND r.place >= 0
    AND r.valid_to > r.recorded_at
  RETURN r AS regular
  ORDER BY r.workspace DESC, r.scope DESC, r.kind DESC, r.key DESC, r.valid_from DESC, r.epoch DESC, r.place DESC
  LIMIT 1
}
CALL (k, m, regular) {
  OPTIONAL MATCH (c:Correction {workspace: m.workspace, scope: m.scope, kind: m.kind, key: m.key})
  WHERE c.valid_from <= k.valid_at < c.valid_to AND c.epoch <= k.epoch < c.retired_epoch
    AND (regular IS NULL OR c.epoch > regular.epoch OR c.epoch = regular.epoch AND c.place > regular.place)
  RETURN c AS correction
  ORDER BY c.epoch DESC, c.place DESC
  LIMIT 1
}
CALL (k) {
  OPTIONAL MATCH (:Role {workspace: k.workspace, id: k.role})-[grant:MAY_READ|DENIED_READ]->(scope:Scope)
  WHERE grant.epoch <= k.authorized_epoch < grant.retired_epoch
    AND grant.valid_from <= k.authorized_at < grant.valid_to
  RETURN collect(CASE WHEN type(grant) = 'MAY_READ' THEN scope.id END) AS granted,
    collect(CASE WHEN type(grant) = 'DENIED_READ' THEN scope.id END) AS denied
}
WITH k, m, rejected, view, admits, granted, denied, coalesce(correction, regular) AS current,
  coalesce(rejected.reasons, []) AS reasons,
  m.kind IN ['fact', 'constraint'] AS evidence,
  COUNT { (m)-[:BOUND_TO]->(:Receipt) } AS receipts
// the premise that failed: breadth first over distinct holders, each step naming the version that holds the place
WITH *, reduce(walk = {next: [{id: m.id, path: [m.id]}], seen: [m.id], broken: [], rings: []},
  level IN range(1, CASE WHEN 'premise_invalid' IN reasons THEN 33 ELSE 0 END) |
  head([found IN [COLLECT {
    UNWIND CASE WHEN size(walk.broken) > 0 THEN [] ELSE walk.next END AS step
    MATCH (x:WorkItem {workspace: m.workspace, id: step.id})-[link:DEPENDS_ON|DERIVED_FROM|FRONTIER_OF]->(p:WorkItem)
    CALL (k, p) {
      OPTIONAL MATCH (r:WorkItem {workspace: p.workspace, scope: p.scope, kind: p.kind, key: p.key})
      USING INDEX SEEK r:WorkItem(workspace, scope, kind, key, valid_from, epoch, place)
      WHERE r.valid_from <= k.valid_at AND r.epoch <= k.epoch < r.retired_epoch AND r.place >= 0
        AND r.valid_to > r.recorded_at
      RETURN r AS regular
      ORDER BY r.workspace DESC, r.scope DESC, r.kind DESC, r.key DESC, r.valid_from DESC, r.epoch DESC, r.place DESC
      LIMIT 1
    }
    CALL (k, p, regular) {
      OPTIONAL MATCH (c:Correction {workspace: p.workspace, scope: p.scope, kind: p.kind, key: p.key})
      WHERE c.valid_from <= k.valid_at < c.valid_to AND c.epoch <= k.epoch < c.retired_epoch
        AND (regular IS NULL OR c.epoch > regular.epoch OR c.epoch = regular.epoch AND c.place > regular.place)
      RETURN c AS correction
      ORDER BY c.epoch DESC, c.place DESC
      LIMIT 1
    }
    WITH step, link, p, coalesce(correction, regular) AS now
    WITH step, p, now, type(link) <> 'FRONTIER_OF' AND (now IS NULL OR now.content_digest <> p.content_digest) AS changed,
      CASE WHEN type(link) = 'FRONTIER_OF' OR now IS NULL OR now.content_digest <> p.content_digest THEN p.id ELSE now.id END
        AS holder
    MATCH (h:WorkItem {workspace: m.workspace, id: holder})
    WITH step, p, now, h, changed, [reason IN [
      CASE WHEN k.valid_at < h.valid_from THEN 'not_yet_valid' END,
      CASE WHEN h.valid_to <= k.valid_at THEN 'expired' END,
      CASE WHEN h.valid_from <= k.valid_at AND h.retired_epoch > k.epoch AND (now.id <> h.id OR EXISTS {
        MATCH (h)<-[:SUPERSEDES {named: true}]-(other:WorkItem)
        WHERE other.epoch <= k.epoch < other.retired_epoch AND other.valid_from <= k.valid_at
      }) THEN 'superseded' END,
      CASE WHEN h.retired_epoch <= k.epoch THEN 'retracted' END,
      CASE WHEN h.erased_epoch IS NOT NULL THEN 'erased' END,
      CASE WHEN EXISTS {
        MATCH (h)<-[:REVOKES]-(v:Revocation)
        WHERE v.code <> 'resolved' AND v.epoch <= k.epoch < v.retired_epoch AND v.effective_from <= k.valid_at
      } THEN 'revoked' END,
      CASE WHEN EXISTS {
        MATCH (h)<-[:REVOKES]-(v:Revocation)
        WHERE v.code = 'resolved' AND v.epoch <= k.epoch < v.retired_epoch AND v.effective_from <= k.valid_at
      } THEN 'resolved' END,
      CASE WHEN EXISTS {
        MATCH (h)<-[verdict:INVALIDATES]-(later:WorkItem)
        WHERE (verdict.task IS NULL OR verdict.task = k.task)
          AND verdict.epoch <= k.epoch < verdict.retired_epoch AND later.retired_epoch > k.epoch
          AND verdict.effective_from <= k.valid_at
          AND NOT EXISTS {
            MATCH (h)<-[answer:RESTORES]-(restorer:WorkItem)
            WHERE (answer.task IS NULL OR answer.task = k.task)
              AND verdict.epoch < answer.epoch AND answer.epoch <= k.epoch < answer.retired_epoch
              AND restorer.retired_epoch > k.epoch AND answer.effective_from <= k.valid_at
          }
      } THEN 'invalidated' END
    ] WHERE reason IS NOT NULL] AS own
    WITH step, p, h, own, changed OR size(own) > 0 AS fails, CASE WHEN changed THEN now.id END AS refreshed
    WHERE fails OR NOT h.id IN walk.seen OR h.id IN step.path
    RETURN {
      id: h.id, premise: p.id, refreshed: refreshed, reasons: own, fails: fails, ring: h.id IN step.path,
      path: step.path + CASE h.id WHEN p.id THEN [p.id] ELSE [p.id, h.id] END
    }
    ORDER BY step.path, p.id
  }] | {
    next: [at IN range(0, size(found) - 1)
      WHERE NOT found[at].fails AND NOT found[at].ring AND none(before IN found[..at] WHERE before.id = found[at].id) | found[at]],
    seen: walk.seen + [one IN found WHERE NOT one.fails | one.id],
    broken: walk.broken + [one IN found WHERE one.fails],
    rings: walk.rings + [one IN found WHERE one.ring AND NOT one.fails | one.path]
  }])
) AS walk
RETURN m {
    .id, .key, .kind, .scope, .content, .task, .role, .purposes, .author, .epoch, .length,
    valid_from: datetime({epochMillis: 0})
      + duration({seconds: m.valid_from / 1000000, microseconds: m.valid_from % 1000000}),
    valid_to: CASE WHEN m.valid_to < 9223372036854775807 THEN datetime({epochMillis: 0})
      + duration({seconds: m.valid_to / 1000000, microseconds: m.valid_to % 1000000}) END,
    recorded_at: datetime({epochMillis: 0})
      + duration({seconds: m.recorded_at / 1000000, microseconds: m.recorded_at % 1000000})
  } AS item,
  k {
    .id, .principal, .role, .task, .purpose, .decision, .reason, .preview, .coverage, .critical, .uncovered, .epoch,
    .authorized_epoch,
    valid_at: datetime({epochMillis: 0})
      + duration({seconds: k.valid_at / 1000000, microseconds: k.valid_at % 1000000}),
    authorized_at: datetime({epochMillis: 0})
      + duration({seconds: k.authorized_at / 1000000, microseconds: k.authorized_at % 1000000})
  } AS cycle,
  CASE
    WHEN k.decision = 'refused' THEN 'not_judged'
    WHEN NOT m.id IN k.pool THEN 'outside_pool'
    WHEN size(reasons) > 0 THEN 'rejected'
    WHEN m.id IN k.selected THEN 'admitted'
    WHEN k.decision = 'admitted' THEN 'left_out'
    ELSE 'eligible'
  END AS outcome,
  head([at IN range(0, size(k.selected) - 1) WHERE k.selected[at] = m.id | k.selected_why[at]]) AS admitted_for,
  head([at IN range(0, size(k.selected) - 1) WHERE k.selected[at] = m.id | at]) AS rank,
  CASE WHEN admits IS NOT NULL THEN view.jti END AS view,
  [gate IN CASE WHEN k.decision <> 'refused' AND m.id IN k.pool THEN [
      ['authorization', ['scope_not_granted', 'denied', 'source_not_readable']],
      ['temporal', ['not_yet_valid', 'expired', 'superseded', 'revoked', 'resolved', 'retracted', 'invalidated',
        'premise_invalid', 'erased', 'unverified']],
      ['applicability', ['wrong_task', 'wrong_purpose', 'kind_not_allowed', 'wrong_role']],
      ['provenance', ['missing_receipt', 'receipt_mismatch', 'receipt_revoked', 'unbound_support']],
      ['size', ['over_item_budget']]
    ] ELSE [] END |
    {gate: gate[0], reasons: [reason IN gate[1] WHERE reason IN reasons], passed: none(reason IN gate[1] WHERE reason IN reasons)}
  ] AS gates,
  CASE WHEN k.decision = 'refused' OR m.id IN k.pool THEN [] ELSE [reason IN [
    CASE WHEN m.task <> k.task THEN 'wrong_task' END,
    CASE WHEN m.epoch > k.epoch THEN 'recorded_later' END,
    CASE WHEN m.retired_epoch <= k.epoch THEN 'retracted' END,
    CASE WHEN k.valid_at < m.valid_from THEN 'not_yet_valid' END,
    CASE WHEN m.valid_to <= k.valid_at THEN 'expired' END,
    CASE WHEN m.epoch <= k.epoch < m.retired_epoch AND m.valid_from <= k.valid_at AND (current.id <> m.id OR EXISTS {
      MATCH (m)<-[:SUPERSEDES {named: true}]-(other:WorkItem)
      WHERE other.epoch <= k.epoch < other.retired_epoch AND other.valid_from <= k.valid_at
    }) THEN 'superseded' END,
    CASE WHEN EXISTS {
      MATCH (m)<-[:REVOKES]-(v:Revocation)
      WHERE v.code <> 'resolved' AND v.epoch <= k.epoch < v.retired_epoch AND v.effective_from <= k.valid_at
    } THEN 'revoked' END,
    CASE WHEN EXISTS {
      MATCH (m)<-[:REVOKES]-(v:Revocation)
      WHERE v.code = 'resolved' AND v.epoch <= k.epoch < v.retired_epoch AND v.effective_from <= k.valid_at
    } THEN 'resolved' END
  ] WHERE reason IS NOT NULL] END AS outside,
  [reason IN ['not_selected', 'missing_frontier', 'mandatory_over_budget', 'obligation_not_admissible']
    WHERE reason + ' ' + m.id IN k.left_out] AS selection,
  // authorization
  {
    role: k.role, scope: m.scope, granted: m.scope IN granted, denied: m.scope IN denied,
    denials: COLLECT {
      MATCH (:Role {workspace: k.workspace, id: k.role})-[denial:DENIED_READ]->(:Scope {workspace: k.workspace, id: m.scope})
      WHERE denial.epoch <= k.authorized_epoch < denial.retired_epoch
        AND denial.valid_from <= k.authorized_at < denial.valid_to
      RETURN denial.id
    },
    lapsed: COLLECT {
      MATCH (:Role {workspace: k.workspace, id: k.role})-[grant:MAY_READ]->(:Scope {workspace: k.workspace, id: m.scope})
      WHERE grant.epoch <= k.authorized_epoch
        AND (grant.retired_epoch <= k.authorized_epoch OR NOT grant.valid_from <= k.authorized_at < grant.valid_to)
      RETURN grant.id
    }
  } AS permission,
  COLLECT {
    MATCH path = SHORTEST 1 (m)-[:DERIVED_FROM]->+(s:WorkItem)
    WHERE NOT s.scope IN granted OR s.scope IN denied
    RETURN {
      path: [one IN nodes(path) | one.id], scope: s.scope,
      reasons: [reason IN [
        CASE WHEN NOT s.scope IN granted THEN 'scope_not_granted' END, CASE WHEN s.scope IN denied THEN 'denied' END
      ] WHERE reason IS NOT NULL]
    }
    ORDER BY length(path), s.id
    LIMIT 3
  } AS sources,
  // temporal
  COLLECT {
    CALL (m, k, current) {
      WITH current WHERE m.epoch <= k.epoch < m.retired_epoch AND m.valid_from <= k.valid_at AND current.id <> m.id
      RETURN current AS by, CASE WHEN current:Correction THEN 'correction' ELSE 'version' END AS how
      UNION
      MATCH (m)<-[:SUPERSEDES {named: true}]-(other:WorkItem)
      WHERE other.epoch <= k.epoch < other.retired_epoch AND other.valid_from <= k.valid_at
      RETURN other AS by, 'named' AS how
    }
    RETURN by {
      .id, .key, .scope, .content, .author, .epoch, how: how,
      valid_from: datetime({epochMillis: 0})
        + duration({seconds: by.valid_from / 1000000, microseconds: by.valid_from % 1000000})
    }
  } AS superseded_by,
  COLLECT {
    MATCH (m)<-[:REVOKES]-(v:Revocation)
    WHERE v.epoch <= k.epoch < v.retired_epoch AND v.effective_from <= k.valid_at
    RETURN v {
      .id, .code, .reason, .author, .epoch,
      effective_from: datetime({epochMillis: 0})
        + duration({seconds: v.effective_from / 1000000, microseconds: v.effective_from % 1000000})
    }
    ORDER BY v.epoch, v.id
  } AS revocations,
  head(COLLECT {
    MATCH (e:Epoch {workspace: m.workspace, number: m.retired_epoch})
    WHERE m.retired_epoch <= k.epoch
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
  }) AS erasure,
  COLLECT {
    MATCH (m)<-[verdict:INVALIDATES|PROPOSED|UNVERIFIED]-(later:WorkItem)
    WHERE (verdict.task IS NULL OR verdict.task = k.task)
      AND verdict.epoch <= k.epoch < verdict.retired_epoch AND later.retired_epoch > k.epoch
      AND CASE type(verdict) WHEN 'INVALIDATES' THEN verdict.effective_from ELSE later.valid_from END <= k.valid_at
    WITH verdict, later, COLLECT {
      MATCH (m)<-[answer:RESTORES]-(restorer:WorkItem)
      WHERE (answer.task IS NULL OR answer.task = k.task)
        AND verdict.epoch < answer.epoch AND answer.epoch <= k.epoch < answer.retired_epoch
        AND restorer.retired_epoch > k.epoch
        AND (type(verdict) = 'INVALIDATES' AND answer.effective_from <= k.valid_at
          OR type(verdict) <> 'INVALIDATES' AND restorer.id = later.id)
      RETURN answer {
        .id, .quote, .rationale, .confidence, .epoch, .author, says: type(answer), later: restorer.id,
        content: restorer.content
      } AS answered
      UNION
      MATCH (m)<-[answer:INVALIDATES|CLEARED]-(later)
      WHERE type(verdict) <> 'INVALIDATES' AND (answer.task IS NULL OR answer.task = k.task)
        AND verdict.epoch < answer.epoch AND answer.epoch <= k.epoch < answer.retired_epoch
      RETURN answer {
        .id, .quote, .rationale, .confidence, .epoch, .author, says: type(answer), later: later.id, content: later.content
      } AS answered
    } AS answers
    RETURN verdict {
      .id, .task, .quote, .rationale, .confidence, .model, .prompt, .tokens, .cause, .author, .epoch,
      says: type(verdict), later: later.id, key: later.key, content: later.content, answers: answers,
      supersedes: COLLECT {
        MATCH (later)-[link:SUPERSEDES]->(old:WorkItem)
        WHERE link.epoch <= k.epoch
        RETURN old.id
        ORDER BY old.valid_from DESC, old.epoch DESC, old.place DESC
        LIMIT 5
      },
      effective_from: datetime({epochMillis: 0})
        + duration({seconds: verdict.effective_from / 1000000, microseconds: verdict.effective_from % 1000000})
    }
    ORDER BY size(answers), verdict.epoch DESC, verdict.id
    LIMIT 20
  } AS verdicts,
  COLLECT {
    UNWIND walk.broken[..3] AS one
    MATCH (h:WorkItem {workspace: m.workspace, id: one.id})
    MATCH (p:WorkItem {workspace: m.workspace, id: one.premise})
    OPTIONAL MATCH (r:WorkItem {workspace: m.workspace, id: one.refreshed})
    RETURN {
      path: one.path, premise: p.id, content: p.content, reasons: one.reasons,
      refreshed: CASE WHEN r IS NOT NULL THEN {id: r.id, content: r.content} END,
      by: COLLECT {
        MATCH (h)<-[link:INVALIDATES]-(later:WorkItem)
        WHERE (link.task IS NULL OR link.task = k.task) AND link.epoch <= k.epoch < link.retired_epoch
          AND later.retired_epoch > k.epoch AND link.effective_from <= k.valid_at AND 'invalidated' IN one.reasons
          AND NOT EXISTS {
            MATCH (h)<-[answer:RESTORES]-(restorer:WorkItem)
            WHERE (answer.task IS NULL OR answer.task = k.task)
              AND link.epoch < answer.epoch AND answer.epoch <= k.epoch < answer.retired_epoch
              AND restorer.retired_epoch > k.epoch AND answer.effective_from <= k.valid_at
          }
        RETURN {reason: 'invalidated', id: later.id, content: later.content, quote: link.quote, author: link.author} AS cause
        UNION
        MATCH (h)<-[:REVOKES]-(v:Revocation)
        WHERE v.epoch <= k.epoch < v.retired_epoch AND v.effective_from <= k.valid_at
        RETURN {reason: CASE v.code WHEN 'resolved' THEN 'resolved' ELSE 'revoked' END, id: v.id, content: v.reason,
          quote: null, author: v.author} AS cause
        UNION
        MATCH (h)<-[:SUPERSEDES {named: true}]-(other:WorkItem)
        WHERE other.epoch <= k.epoch < other.retired_epoch AND other.valid_from <= k.valid_at
        RETURN {reason: 'superseded', id: other.id, content: other.content, quote: null, author: other.author} AS cause
        UNION
        WITH h WHERE 'retracted' IN one.reasons
        RETURN {reason: 'retracted', id: null, content: null, quote: null, author: h.retired_by} AS cause
      }
    }
  } AS premises,
  CASE
    WHEN NOT 'premise_invalid' IN reasons OR size(walk.broken) > 0 THEN []
    WHEN size(walk.rings) > 0 THEN walk.rings[..1]
    ELSE COLLECT {
      UNWIND walk.seen AS id
      MATCH (x:WorkItem {workspace: m.workspace, id: id})
      MATCH path = SHORTEST 1 (x)-[:DEPENDS_ON|DERIVED_FROM]->+(x)
      RETURN [one IN nodes(path) | one.id]
      LIMIT 1
    }
  END AS circle,
  // applicability and size: what the return wanted and what the item has
  [one IN [
    CASE WHEN 'wrong_task' IN reasons OR m.task <> k.task
      THEN {reason: 'wrong_task', wanted: k.task, got: m.task} END,
    CASE WHEN 'wrong_purpose' IN reasons
      THEN {reason: 'wrong_purpose', wanted: k.purpose, got: reduce(text = head(m.purposes), one IN tail(m.purposes) | text + ', ' + one)} END,
    CASE WHEN 'kind_not_allowed' IN reasons
      THEN {reason: 'kind_not_allowed', wanted: reduce(text = head(k.kinds), one IN tail(k.kinds) | text + ', ' + one), got: m.kind} END,
    CASE WHEN 'wrong_role' IN reasons
      THEN {reason: 'wrong_role', wanted: k.role, got: m.role} END,
    CASE WHEN 'over_item_budget' IN reasons
      THEN {reason: 'over_item_budget', wanted: toString(k.max_item_chars), got: toString(m.length)} END
  ] WHERE one IS NOT NULL] AS compared,
  // provenance
  COLLECT {
    MATCH (m)-[binding:BOUND_TO]->(r:Receipt)
    RETURN r {
      .id, .uri, .issuer, .origin, .sha256, claimed: binding.sha256, mismatch: binding.sha256 <> r.sha256,
      retracted: r.retired_epoch <= k.epoch,
      revocations: COLLECT {
        MATCH (r)<-[:REVOKES]-(v:Revocation)
        WHERE v.epoch <= k.epoch < v.retired_epoch AND v.effective_from <= k.valid_at
        RETURN v {
          .id, .code, .reason, .author, .epoch,
          effective_from: datetime({epochMillis: 0})
            + duration({seconds: v.effective_from / 1000000, microseconds: v.effective_from % 1000000})
        }
      }
    }
    ORDER BY r.id
  } AS receipts,
  COLLECT {
    MATCH (m)-[claim:SUPPORTS]->(d:Dependency)
    WITH claim, d, CASE
      WHEN claim.receipt IS NULL THEN
        CASE WHEN evidence AND receipts = 0 AND NOT EXISTS { (m)-[:DERIVED_FROM]->(:WorkItem)-[:SUPPORTS]->(d) }
          THEN 'no_receipt' END
      WHEN NOT EXISTS { (m)-[:BOUND_TO]->(:Receipt {id: claim.receipt}) } THEN 'not_bound'
      WHEN NOT EXISTS {
        MATCH (m)-[:BOUND_TO]->(r:Receipt {id: claim.receipt})
        WHERE r.retired_epoch > k.epoch AND NOT EXISTS {
          MATCH (r)<-[:REVOKES]-(v:Revocation)
          WHERE v.epoch <= k.epoch < v.retired_epoch AND v.effective_from <= k.valid_at
        }
      } THEN 'receipt_dead'
    END AS problem
    WHERE problem IS NOT NULL
    RETURN {dependency: d.id, receipt: claim.receipt, problem: problem}
    ORDER BY d.id
  } AS unbound,
  COLLECT {
    WITH m
    WHERE 'missing_receipt' IN reasons
    MATCH path = SHORTEST 1 (m) ((a:WorkItem WHERE NOT EXISTS { (a)-[:BOUND_TO]->() })-[:DERIVED_FROM]->(b:WorkItem))+ (s)
    WHERE s.kind IN ['fact', 'constraint'] AND NOT EXISTS { (s)-[:BOUND_TO]->() } AND NOT EXISTS { (s)-[:DERIVED_FROM]->() }
      OR EXISTS { MATCH (s)-[binding:BOUND_TO]->(r:Receipt) WHERE binding.sha256 <> r.sha256 }
      OR s.kind IN ['fact', 'constraint'] AND EXISTS { (s)-[:BOUND_TO]->() } AND NOT EXISTS {
        MATCH (s)-[:BOUND_TO]->(r:Receipt)
        WHERE r.retired_epoch > k.epoch AND NOT EXISTS {
          MATCH (r)<-[:REVOKES]-(v:Revocation)
          WHERE v.epoch <= k.epoch < v.retired_epoch AND v.effective_from <= k.valid_at
        }
      }
      OR EXISTS {
        MATCH (s)-[claim:SUPPORTS]->(:Dependency)
        WHERE claim.receipt IS NOT NULL AND NOT EXISTS {
          MATCH (s)-[:BOUND_TO]->(r:Receipt {id: claim.receipt})
          WHERE r.retired_epoch > k.epoch AND NOT EXISTS {
            MATCH (r)<-[:REVOKES]-(v:Revocation)
            WHERE v.epoch <= k.epoch < v.retired_epoch AND v.effective_from <= k.valid_at
          }
        }
      }
      OR s.kind IN ['fact', 'constraint'] AND NOT EXISTS { (s)-[:BOUND_TO]->() } AND EXISTS {
        MATCH (s)-[:SUPPORTS]->(d:Dependency)
        WHERE NOT EXISTS { (s)-[:DERIVED_FROM]->(:WorkItem)-[:SUPPORTS]->(d) }
      }
    RETURN [one IN nodes(path) | one.id]
    ORDER BY length(path)
    LIMIT 3
  } AS unproven
