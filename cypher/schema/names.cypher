// The names of every relationship, and of every property that an audit may ask for, before the first is written: in a
// young graph Neo4j else warns of each one that it does not know yet. Names that are there stay as they are.
CALL () {
  UNWIND [
    'ABOUT', 'ADMITS', 'BOUND_TO', 'CHANGES', 'DEPENDS_ON', 'DERIVED_FROM', 'ERASES', 'FRONTIER_OF', 'GROUNDED_IN',
    'ISSUED', 'OPENED', 'READING_OF', 'REJECTED', 'RELIES_ON', 'REQUIRES', 'RETURNED_FROM', 'REVOKES', 'SCAN_OF',
    'SUPERSEDES', 'SUPPORTS'
  ] AS name
  CALL db.createRelationshipType(name)
}
CALL () {
  UNWIND [
    'aspect', 'at', 'author', 'authorized_at', 'authorized_epoch', 'cause', 'code', 'confidence', 'content',
    'content_digest', 'coverage', 'created_at', 'critical', 'decision', 'detail', 'digest', 'effective_from',
    'erased_epoch', 'expires_at', 'form', 'gates', 'ids', 'issuer', 'item_ids', 'joined', 'kinds', 'laters',
    'left_out', 'length', 'limit', 'max_item_chars', 'named', 'origin', 'policy', 'pool', 'preview', 'previous',
    'prompt', 'purpose', 'purposes', 'quote', 'rank', 'rationale', 'reason', 'reasons', 'receipt', 'records',
    'request', 'retired_by', 'retired_epoch', 'says', 'selected', 'selected_why', 'selection', 'sha256', 'status',
    'subjects', 'temperature', 'text', 'tokens', 'tokens_in', 'tokens_out', 'uncovered', 'uri', 'valid_at', 'why',
    'workload'
  ] AS name
  CALL db.createProperty(name)
}
