// Claims work for one process, for a while: what another process has claimed and not let go is left out.
// Parameters: $workspace, $keys, $holder, $lease (milliseconds, of the server's clock).
UNWIND $keys AS key
MERGE (c:Claim {workspace: $workspace, id: key})
WITH c, c.holder IS NULL OR c.holder = $holder OR c.expires_at <= timestamp() AS free
SET c.holder = CASE WHEN free THEN $holder ELSE c.holder END,
  c.expires_at = CASE WHEN free THEN timestamp() + $lease ELSE c.expires_at END
WITH c WHERE free
RETURN collect(c.id) AS got
