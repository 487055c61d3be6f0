// What the graph holds up to an epoch that the commit log doesn't name, the first of it: its epoch and what it is.
// Parameters: $workspace, $latest (the last epoch walked).
CALL () {
  MATCH (m:WorkItem {workspace: $workspace})
  WHERE m.epoch <= $latest
  RETURN m.epoch AS epoch, ['item ' + coalesce(m.id, '?')] AS names
  UNION ALL
  MATCH (n:Receipt {workspace: $workspace})
  RETURN n.epoch AS epoch, ['receipt ' + coalesce(n.id, '?')] AS names
  UNION ALL
  MATCH (n:Revocation {workspace: $workspace})
  RETURN n.epoch AS epoch, ['revoke ' + coalesce(n.id, '?')] AS names
  UNION ALL
  MATCH (:WorkItem|Receipt {workspace: $workspace})<-[:REVOKES]-(n)
  WHERE n.workspace IS NULL
  RETURN n.epoch AS epoch, ['revoke ' + coalesce(n.id, '?')] AS names
  UNION ALL
  MATCH (n:Experience {workspace: $workspace})
  RETURN n.epoch AS epoch, ['remember ' + coalesce(n.id, '?')] AS names
  UNION ALL
  MATCH (n:Checkpoint {workspace: $workspace})
  RETURN n.epoch AS epoch, ['depart ' + coalesce(n.id, '?')] AS names
  UNION ALL
  MATCH (n:Policy {workspace: $workspace})
  WHERE n.revision <> 1
  RETURN n.epoch AS epoch, ['policy ' + toString(n.revision)] AS names
  UNION ALL
  MATCH (n:Erasure {workspace: $workspace})
  RETURN n.epoch AS epoch, ['erase ' + coalesce(n.target, '?')] AS names
  UNION ALL
  MATCH (:Principal {workspace: $workspace})-[g:HOLDS]->()
  RETURN g.epoch AS epoch, ['grant ' + coalesce(g.id, '?'), 'deny ' + coalesce(g.id, '?')] AS names
  UNION ALL
  MATCH (:Role {workspace: $workspace})-[g:MAY_READ|MAY_WRITE|DENIED_READ|DENIED_WRITE]->()
  RETURN g.epoch AS epoch, ['grant ' + coalesce(g.id, '?'), 'deny ' + coalesce(g.id, '?')] AS names
  UNION ALL
  MATCH (:WorkItem {workspace: $workspace})<-[v:PROPOSED|INVALIDATES|CLEARED|UNVERIFIED|RESTORES]-()
  RETURN v.epoch AS epoch, ['verdict ' + coalesce(v.id, '?')] AS names
}
WITH coalesce(epoch, 0) AS epoch, names
WHERE epoch <= $latest AND NOT EXISTS {
  MATCH (e:Epoch {workspace: $workspace, number: epoch})
  WHERE any(name IN names WHERE name IN e.subjects)
}
RETURN epoch, head(names) AS record
ORDER BY epoch, record
LIMIT 1
