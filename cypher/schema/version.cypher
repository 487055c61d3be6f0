// Which version of the schema this database has; no row before the first.
MATCH (s:TracegraphSchema)
RETURN max(s.version) AS version
