"""Packaging for pip and for colcon (ament_python); package.xml says the same to rosdep."""
import sys
from pathlib import Path

from setuptools import find_packages, setup

NAME = "rnea_ros"

# Only colcon and bloom call `setup.py install` and `develop`, and there package.xml brings what is needed. A requirement
# that rosdep cannot provide by its pip name (llvmlite) would do nothing but break the scripts they generate: as soon as
# anything in such a process imports pkg_resources, it searches every requirement.
FOR_ROS = bool({"install", "develop"} & set(sys.argv))

SHARED = sorted(
    file
    for folder in ("config", "launch", "urdf")
    for file in Path(folder).rglob("*")
    if file.is_file() and "__pycache__" not in file.parts
)

setup(
    name=NAME,
    version="0.2.0",
    description="Exact joint torques and torque rates of a robot from its URDF, as a library and as ROS 2 nodes",
    long_description=Path(__file__).resolve().with_name("README.md").read_text(encoding="utf-8"),  # colcon links setup.py
    long_description_content_type="text/markdown",
    author="rnea_ros maintainers",
    author_email="maintainers@rnea-ros.example",
    maintainer="rnea_ros maintainers",
    maintainer_email="maintainers@rnea-ros.example",
    license="Apache-2.0",
    keywords=["robotics", "robot dynamics", "inverse dynamics", "recursive Newton-Euler", "torque", "torque rate", "URDF",
              "ROS 2", "trajectory scaling"],
    classifiers=[
        "Development Status :: 4 - Beta",
        "Intended Audience :: Developers",
        "Intended Audience :: Science/Research",
        "Operating System :: POSIX :: Linux",
        "Programming Language :: Python :: 3",
        "Programming Language :: Python :: 3.10",
        "Programming Language :: Python :: 3.11",
        "Programming Language :: Python :: 3.12",
        "Programming Language :: Python :: 3.13",
        "Topic :: Scientific/Engineering :: Physics",
        "Typing :: Typed",
    ],
    python_requires=">=3.10",
    packages=find_packages(include=[NAME, f"{NAME}.*"]),
    package_data={NAME: ["py.typed"], f"{NAME}.export": ["templates/*"],
                  f"{NAME}.model": ["profiles/*.yaml"]},
    install_requires=[] if FOR_ROS else ["argcomplete>=1.8", "jsonschema>=3.2", "llvmlite>=0.45", "lxml", "numpy>=1.21",
                                         "pyyaml"],
    extras_require={
        # ROS 2 Kilted from PyPI, for machines without a ROS installation. Wheels of two distributions do not mix.
        "ros": [
            "ros-ament-index-python~=1.11.0",
            "ros-builtin-interfaces~=2.3.0",
            "ros-diagnostic-msgs~=5.5.1",
            "ros-geometry-msgs~=5.5.1",
            "ros-nav-msgs~=5.5.1",
            "ros-rcl-interfaces~=2.3.0",
            "ros-rclpy[fastrtps]~=9.1.2",
            "ros-rosgraph-msgs~=2.3.0",
            "ros-sensor-msgs~=5.5.1",
            "ros-std-msgs~=5.5.1",
            "ros-std-srvs~=5.5.1",
            "ros-trajectory-msgs~=5.5.1",
            "ros-visualization-msgs~=5.5.1",
            "xacro",
        ],
        "jazzy": [  # the same of Jazzy, an LTS
            "ros-ament-index-python~=1.8.1",
            "ros-builtin-interfaces~=2.0.3",
            "ros-diagnostic-msgs~=5.3.6",
            "ros-geometry-msgs~=5.3.6",
            "ros-nav-msgs~=5.3.6",
            "ros-rcl-interfaces~=2.0.3",
            "ros-rclpy[fastrtps]~=7.1.6",
            "ros-rosgraph-msgs~=2.0.3",
            "ros-sensor-msgs~=5.3.6",
            "ros-std-msgs~=5.3.6",
            "ros-std-srvs~=5.3.6",
            "ros-trajectory-msgs~=5.3.6",
            "ros-visualization-msgs~=5.3.6",
            "xacro",
        ],
        "bags": ["pyarrow", "rosbags"],  # recordings of ROS 2, without ROS; results as Parquet
        "dask": ["distributed"],
        "docs": ["furo", "myst-parser", "sphinx", "sphinx-copybutton", "sphinx-mathjax-offline"],
        "planning": ["casadi", "scipy"],
        "plot": ["matplotlib"],
        "sim": ["example-robot-data", "mujoco>=3.3", "toppra"],  # robots that move by themselves, and others' timing
        # pin is Pinocchio, an oracle as MuJoCo and TOPP-RA are
        "test": ["distributed", "example-robot-data", "mujoco>=3.3", "pin>=3", "pyarrow", "pytest", "pytest-timeout",
                 "pytest-xdist", "rosbags", "toppra"],
        "jax": ["jax>=0.4.36"],  # robots' functions with gradients, in float64 on the processor
        "torch": ["torch>=2.1"],
        "lint": ["codespell~=2.4.2", "mypy~=2.4.1", "ruff~=0.17.5"],
        # the peers; C++ of pin needs Eigen
        "bench": ["casadi", "cmeel-eigen", "copp-py", "matplotlib", "mujoco", "pin>=3", "ruckig", "toppra"],
    },
    entry_points={
        "console_scripts": [
            "rnea = rnea_ros.cli:rnea",
            "all_nodes = rnea_ros.node_commands:all_nodes",
            "dynamics_node = rnea_ros.node_commands:dynamics_node",
            "demo_robot = rnea_ros.node_commands:demo_robot",
            "demo_plant = rnea_ros.node_commands:demo_plant",
            "query_node = rnea_ros.node_commands:query_node",
            "scaling_node = rnea_ros.node_commands:scaling_node",
            "demo_follower = rnea_ros.node_commands:demo_follower",
            "demo_policy = rnea_ros.node_commands:demo_policy",
        ],
    },
    data_files=[
        ("share/ament_index/resource_index/packages", [f"resource/{NAME}"]),
        (f"share/{NAME}", ["package.xml"]),
        *((f"share/{NAME}/{file.parent}", [str(file)]) for file in SHARED),
    ],
    zip_safe=True,
)
