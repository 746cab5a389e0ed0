"""Before all tests: kernels are compiled, not taken from a folder that some other version has filled."""

import os

os.environ["RNEA_ROS_CACHE"] = ""
