// Whether anything was erased after an epoch.
// Parameters: $workspace, $latest.
RETURN EXISTS {
    MATCH (x:Erasure {workspace: $workspace})
    WHERE x.target IS NOT NULL AND x.epoch > $latest
  } AS erased
