// Claims work for one process, for a while: what another process has claimed and not let go is left out.
// Parameters: $workspace, $keys, $holder, $lease and $ordinary (milliseconds, of the server's clock).
// The lock is written before the claim is read: two that find it expired do not both take it.
// Returns what was got, and what another holds for longer than an ordinary lease.
UNWIND $keys AS key
MERGE (c:Claim {workspace: $workspace, id: key})
SET c.lock = true
WITH c, c.holder IS NULL OR c.holder = $holder OR c.expires_at <= timestamp() AS free
SET c.holder = CASE WHEN free THEN $holder ELSE c.holder END,
  c.expires_at = CASE WHEN free THEN timestamp() + $lease ELSE c.expires_at END
RETURN collect(CASE WHEN free THEN c.id END) AS got,
  collect(CASE WHEN NOT free AND c.expires_at > timestamp() + $ordinary THEN c.id END) AS late
