"""One return: the pool and its gates, the cover, the signed view, the private memories."""
