"""Packaging for pip and for colcon (ament_python); package.xml says the same to rosdep."""
import sys

from setuptools import find_packages, setup

NAME = "rnea_rqt"

# Only colcon and bloom call these, and there package.xml brings what is needed, as in rnea_ros.
FOR_ROS = bool({"install", "develop"} & set(sys.argv))

setup(
    name=NAME,
    version="0.2.0",
    description="Joint torques, torque rates and the use of drives beside their limits, as an rqt plugin and a window",
    author="rnea_ros maintainers",
    author_email="maintainers@rnea-ros.example",
    maintainer="rnea_ros maintainers",
    maintainer_email="maintainers@rnea-ros.example",
    license="Apache-2.0",
    keywords=["robotics", "rqt", "torque", "torque rate", "ROS 2"],
    classifiers=[
        "Development Status :: 4 - Beta",
        "Intended Audience :: Science/Research",
        "Operating System :: POSIX :: Linux",
        "Programming Language :: Python :: 3",
        "Topic :: Scientific/Engineering :: Visualization",
    ],
    python_requires=">=3.10",
    packages=find_packages(include=[NAME, f"{NAME}.*"]),
    install_requires=[] if FOR_ROS else ["numpy>=1.21"],
    extras_require={
        "qt": ["PySide6-Essentials>=6.5,<6.9"],  # where there is no rqt, which brings its own Qt
        "test": ["pytest", "pytest-timeout"],
    },
    entry_points={"console_scripts": [f"{NAME} = {NAME}.application:main"]},
    data_files=[
        ("share/ament_index/resource_index/packages", [f"resource/{NAME}"]),
        (f"share/{NAME}", ["package.xml", "plugin.xml"]),
        (f"share/{NAME}/config", ["config/rnea.perspective"]),
    ],
    zip_safe=True,
)
