// Receipts with everything their digests cover, and what must agree with them.
// Parameters: $workspace, $ids, $latest (the last epoch walked).
UNWIND $ids AS id
MATCH (r:Receipt {workspace: $workspace, id: id})
RETURN collect({
  id: r.id,
  stored: properties(r),
  retired: coalesce(r.retired_epoch > $latest, false) OR EXISTS {
    MATCH (e:Epoch {workspace: r.workspace, number: r.retired_epoch})
    WHERE 'retract ' + r.id IN e.subjects
  },
  erased: r.erased_epoch IS NULL OR r.erased_epoch > $latest OR EXISTS {
    MATCH (r)<-[:BOUND_TO]-(:WorkItem)<-[:ERASES]-(x:Erasure)
    WHERE x.epoch = r.erased_epoch
  },
  revocations: COUNT {
    MATCH (r)<-[:REVOKES]-(v)
    WHERE coalesce(v.epoch, 0) <= $latest
  }
}) AS found
