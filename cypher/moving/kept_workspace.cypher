// What verification keeps of a whole workspace: finished sweeps, how endpoints take requests, batches that are out.
// Parameters: $workspace.
RETURN COLLECT {
    MATCH (s:Sweep {workspace: $workspace})
    WHERE s.task IS NOT NULL AND s.method IS NOT NULL AND s.epoch IS NOT NULL
    RETURN properties(s)
    ORDER BY s.epoch, s.valid_at, s.task, s.method
  } AS sweeps,
  COLLECT {
    MATCH (d:Endpoint {workspace: $workspace})
    WHERE d.endpoint IS NOT NULL AND d.model IS NOT NULL
    RETURN properties(d)
    ORDER BY d.endpoint, d.model
  } AS endpoints,
  COLLECT {
    MATCH (j:BatchJob {workspace: $workspace})
    WHERE j.id IS NOT NULL AND j.status <> 'collected'
    RETURN properties(j)
    ORDER BY j.id
  } AS jobs
