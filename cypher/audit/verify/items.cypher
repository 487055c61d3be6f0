// Items with everything their digests cover, and what must agree with them.
// Parameters: $workspace, $ids, $latest (the last epoch walked).
UNWIND $ids AS id
MATCH (m:WorkItem {workspace: $workspace, id: id})
RETURN collect({
  id: m.id,
  stored: properties(m),
  links: {
    receipts: COLLECT { MATCH (m)-[b:BOUND_TO]->(r:Receipt) RETURN [r.id, b.sha256] },
    depends_on: COLLECT { MATCH (m)-[:DEPENDS_ON]->(p:WorkItem) RETURN p.id },
    derived_from: COLLECT { MATCH (m)-[:DERIVED_FROM]->(s:WorkItem) RETURN s.id },
    supersedes: COLLECT { MATCH (m)-[:SUPERSEDES {named: true}]->(old:WorkItem) RETURN old.id },
    supports: COLLECT { MATCH (m)-[s:SUPPORTS]->(d:Dependency) RETURN [d.id, coalesce(s.receipt, '')] },
    requires: COLLECT { MATCH (m)-[n:REQUIRES]->(d:Dependency) RETURN [d.id, n.critical] },
    obligation: COLLECT { MATCH (m)-[:FRONTIER_OF]->(o:WorkItem) RETURN o.id }
  },
  correction: m:Correction,
  identity: EXISTS {
    MATCH (:Identity {
      workspace: m.workspace, task: coalesce(m.task, ''), scope: m.scope, kind: m.kind, key: m.key
    })
  },
  misdated: EXISTS {
    MATCH (m)-[link:BOUND_TO|DEPENDS_ON|DERIVED_FROM|SUPPORTS|REQUIRES|FRONTIER_OF|SUPERSEDES]->()
    WHERE link.epoch IS NULL OR link.epoch <> m.epoch AND (type(link) <> 'SUPERSEDES' OR link.named)
  },
  strange: EXISTS {
    MATCH (m)<-[:SUPERSEDES|REVOKES|PROPOSED|INVALIDATES|CLEARED|UNVERIFIED|RESTORES|ERASES]-(other)
    WHERE other.workspace IS NULL OR other.workspace <> m.workspace
  } OR EXISTS {
    MATCH (m)-[:BOUND_TO|DEPENDS_ON|DERIVED_FROM|SUPPORTS|REQUIRES|FRONTIER_OF|SUPERSEDES]->(other)
    WHERE other.workspace IS NULL OR other.workspace <> m.workspace
  },
  retired: m.retired_epoch = 9223372036854775807 OR EXISTS {
    MATCH (e:Epoch {workspace: m.workspace, number: m.retired_epoch})
    WHERE 'retract ' + m.id IN e.subjects
  },
  erased: m.erased_epoch IS NULL OR EXISTS {
    MATCH (m)<-[:ERASES]-(x:Erasure)
    WHERE x.epoch = m.erased_epoch
  },
  verdicts: COUNT {
    MATCH (m)<-[v:PROPOSED|INVALIDATES|CLEARED|UNVERIFIED|RESTORES]-()
    WHERE coalesce(v.epoch, 0) <= $latest
  },
  revocations: COUNT {
    MATCH (m)<-[:REVOKES]-(v)
    WHERE coalesce(v.epoch, 0) <= $latest
  }
}) AS found
