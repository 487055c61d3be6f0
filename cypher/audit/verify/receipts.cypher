// Receipts with everything their digests cover, and what must agree with them.
// Parameters: $workspace, $ids, $latest (the last epoch walked).
UNWIND $ids AS id
MATCH (r:Receipt {workspace: $workspace, id: id})
RETURN collect({
  id: r.id,
  stored: properties(r),
  retired: r.retired_epoch = 9223372036854775807 OR EXISTS {
    MATCH (e:Epoch {workspace: r.workspace, number: r.retired_epoch})
    WHERE 'retract ' + r.id IN e.subjects
  },
  erased: r.erased_epoch IS NULL OR EXISTS {
    MATCH (r)<-[:BOUND_TO]-(:WorkItem)<-[:ERASES]-(x:Erasure)
    WHERE x.epoch = r.erased_epoch
  },
  strange: EXISTS {
    MATCH (r)<-[:REVOKES|BOUND_TO]-(other)
    WHERE other.workspace IS NULL OR other.workspace <> r.workspace
  },
  revocations: COUNT {
    MATCH (r)<-[:REVOKES]-(v)
    WHERE coalesce(v.epoch, 0) <= $latest
  }
}) AS found
