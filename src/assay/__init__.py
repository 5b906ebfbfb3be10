"""What a transformer is made of and what it costs, exactly, from its config alone."""
