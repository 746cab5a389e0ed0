"""Robot files: one YAML file beside the URDF, with its schema, reader, checks and profiles."""
