"""From the world: a config, a description, a preset or a name in, a model out."""
