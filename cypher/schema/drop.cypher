// Drops one index; refused for one that belongs to a constraint.
// Parameters: $index (its name).
DROP INDEX $index IF EXISTS
