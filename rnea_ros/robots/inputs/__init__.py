"""Arguments of the robots, checked."""
