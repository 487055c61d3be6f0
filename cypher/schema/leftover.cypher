// Indexes that were made for a constraint which itself was never made: the server was killed in between. They are never
// filled, and stand in the constraint's way.
// Parameters: $names (of the schema's constraints).
SHOW INDEXES YIELD name, owningConstraint
WHERE name IN $names AND owningConstraint IS NULL
RETURN name
