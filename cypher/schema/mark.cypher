// Notes that the schema is in place.
// Parameters: $version.
MERGE (s:TracegraphSchema)
SET s.version = $version
