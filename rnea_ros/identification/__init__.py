"""What a recording says about a robot: regressors, base parameters, least squares, and whether bodies can have the result."""
