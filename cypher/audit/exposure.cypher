// Who was shown an item: every Return View that admitted it, to whom, when, and when it was opened; and what has happened by
// $now to the item and to what it rests on. Whether that ends the item the gates say: a premise's words may be back, or
// their holder gone (`ended` of `tracegraph exposure`).
// Parameters: $workspace, $item, $now (microseconds).
// :param workspace => 'trip'
// :param item => 'h0'
// :param now => timestamp() * 1000
MATCH (m:WorkItem {workspace: $workspace, id: $item})
RETURN m {.id, .key, .scope, .kind, .content, .task} AS item,
  COLLECT {
    MATCH (k:ReturnCycle)-[:ISSUED]->(v:ReturnView)-[a:ADMITS]->(m)
    RETURN {
      view: v.jti, cycle: k.id, principal: k.principal, role: k.role, task: k.task, purpose: k.purpose,
      workload: k.workload, why: a.why, rank: a.rank, epoch: k.epoch,
      issued_at: datetime({epochMillis: 0})
        + duration({seconds: k.authorized_at / 1000000, microseconds: k.authorized_at % 1000000}),
      expires_at: datetime({epochMillis: 0})
        + duration({seconds: v.expires_at / 1000000, microseconds: v.expires_at % 1000000}),
      opened: COLLECT {
        MATCH (p:Principal)-[o:OPENED]->(v)
        RETURN {
          principal: p.id,
          at: datetime({epochMillis: 0}) + duration({seconds: o.at / 1000000, microseconds: o.at % 1000000})
        }
        ORDER BY o.at
      }
    }
    ORDER BY k.authorized_at, v.jti
  } AS views,
  COLLECT {
    MATCH path = SHORTEST 1 (m)-[:DEPENDS_ON|DERIVED_FROM|FRONTIER_OF]->*(n:WorkItem)
    CALL (m, n) {
      WITH n WHERE n.valid_to <= $now
      RETURN 'expired' AS reason, null AS by, null AS words, null AS task, n.valid_to AS at
      UNION ALL
      MATCH (s:WorkItem {workspace: n.workspace, scope: n.scope, kind: n.kind, key: n.key})
      USING INDEX SEEK s:WorkItem(workspace, scope, kind, key, valid_from, epoch, place)
      WHERE n.valid_from <= s.valid_from <= $now AND s.epoch >= 0 AND s.place >= 0
        AND s.retired_epoch = 9223372036854775807 AND s.valid_to > s.recorded_at
        AND (s.valid_from > n.valid_from OR s.epoch > n.epoch OR s.epoch = n.epoch AND s.place > n.place)
        AND (n = m OR s.content_digest <> n.content_digest)
      RETURN 'superseded' AS reason, s.id AS by, s.content AS words, null AS task, s.valid_from AS at
      UNION ALL
      MATCH (n)<-[:SUPERSEDES {named: true}]-(s:WorkItem)
      WHERE s.retired_epoch = 9223372036854775807 AND s.valid_from <= $now
      RETURN 'superseded' AS reason, s.id AS by, s.content AS words, null AS task, s.valid_from AS at
      UNION ALL
      MATCH (n)<-[:REVOKES]-(v:Revocation)
      WHERE v.retired_epoch = 9223372036854775807 AND v.effective_from <= $now
      RETURN CASE v.code WHEN 'resolved' THEN 'resolved' ELSE 'revoked' END AS reason, v.author AS by, v.reason AS words,
        null AS task, v.effective_from AS at
      UNION ALL
      MATCH (e:Epoch {workspace: n.workspace, number: n.retired_epoch})
      RETURN 'retracted' AS reason, n.retired_by AS by, null AS words, null AS task, e.recorded_at AS at
      UNION ALL
      MATCH (n)<-[:ERASES]-(x:Erasure)
      MATCH (e:Epoch {workspace: x.workspace, number: x.epoch})
      RETURN 'erased' AS reason, x.author AS by, x.reason AS words, null AS task, e.recorded_at AS at
      UNION ALL
      MATCH (n)<-[verdict:INVALIDATES]-(later:WorkItem)
      WHERE verdict.retired_epoch = 9223372036854775807 AND later.retired_epoch = 9223372036854775807
        AND verdict.effective_from <= $now AND NOT EXISTS {
          MATCH (n)<-[answer:RESTORES]-(restorer:WorkItem)
          WHERE (answer.task IS NULL OR answer.task = verdict.task)
            AND answer.epoch > verdict.epoch AND answer.retired_epoch = 9223372036854775807
            AND restorer.retired_epoch = 9223372036854775807 AND answer.effective_from <= $now
        }
      RETURN 'invalidated' AS reason, later.id AS by, coalesce(verdict.quote, later.content) AS words,
        verdict.task AS task, verdict.effective_from AS at
    }
    RETURN {
      path: [one IN nodes(path) | one.id], reason: reason, by: by, words: words, task: task,
      at: datetime({epochMillis: 0}) + duration({seconds: at / 1000000, microseconds: at % 1000000})
    }
    ORDER BY length(path), at
    LIMIT 20
  } AS since
