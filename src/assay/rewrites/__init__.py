"""From a spec to a spec: readings then work on the rewritten model without knowing it."""
