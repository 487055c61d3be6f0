// Which server this is, and its clock at this moment (microseconds since 1970 UTC).
// Parameters: none.
CALL dbms.components() YIELD name, versions, edition
WITH name, versions, edition
WHERE name = 'Neo4j Kernel'
WITH versions, edition, datetime.realtime() AS now
RETURN versions[0] AS version,
  edition,
  now.epochSeconds * 1000000 + now.microsecond AS now
