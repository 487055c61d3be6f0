// The state of every index that the schema makes, by name.
// Parameters: none.
SHOW INDEXES YIELD name, state
WHERE name STARTS WITH 'tracegraph_'
RETURN name, state
