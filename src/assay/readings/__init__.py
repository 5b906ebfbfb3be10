"""From a spec to an answer: each reading is a fold over ops, and sees neither blocks nor sources."""
