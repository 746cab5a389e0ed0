"""`rnea demo`: a robot that is not there, the dynamics node in another process, and checks of what it says."""
