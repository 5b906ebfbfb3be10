"""From answers to text and JSON: units, tables, and one module a command. Nothing here counts."""
