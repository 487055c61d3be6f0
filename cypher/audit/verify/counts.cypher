// How much of each kind the graph holds up to an epoch, to be compared with what the commit log names.
// Parameters: $workspace, $latest (the last epoch walked).
RETURN {
  item: COUNT { MATCH (m:WorkItem {workspace: $workspace}) WHERE m.epoch <= $latest },
  receipt: COUNT { MATCH (r:Receipt {workspace: $workspace}) WHERE coalesce(r.epoch, 0) <= $latest },
  revoke: COUNT { MATCH (v:Revocation {workspace: $workspace}) WHERE coalesce(v.epoch, 0) <= $latest },
  remember: COUNT { MATCH (x:Experience {workspace: $workspace}) WHERE coalesce(x.epoch, 0) <= $latest },
  depart: COUNT { MATCH (c:Checkpoint {workspace: $workspace}) WHERE coalesce(c.epoch, 0) <= $latest },
  policy: COUNT { MATCH (y:Policy {workspace: $workspace}) WHERE coalesce(y.epoch, 0) <= $latest AND y.revision <> 1 },
  erase: COUNT { MATCH (x:Erasure {workspace: $workspace}) WHERE coalesce(x.epoch, 0) <= $latest },
  held: COUNT {
    MATCH (:Principal {workspace: $workspace})-[g:HOLDS]->()
    WHERE coalesce(g.epoch, 0) <= $latest
  },
  scoped: COUNT {
    MATCH (:Role {workspace: $workspace})-[g:MAY_READ|MAY_WRITE|DENIED_READ|DENIED_WRITE]->()
    WHERE coalesce(g.epoch, 0) <= $latest
  }
} AS counts
