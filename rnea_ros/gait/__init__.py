"""Human walking predicted by optimization: Barman, thesis, chapter V."""
