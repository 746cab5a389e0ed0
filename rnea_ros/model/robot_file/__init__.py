"""One YAML beside the URDF, for all that a URDF cannot say of a robot: schema, reader, checks, and the files of before."""
