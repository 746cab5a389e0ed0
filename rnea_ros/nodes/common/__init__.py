"""Parts that the nodes share."""
