# Lets the package build against the ROS 2 wheels of PyPI, in a pip build and wherever no ROS installation is sourced.
# With a sourced ROS installation nothing here changes the build.

find_path(sourced_ros share/ament_cmake/cmake/ament_cmakeConfig.cmake PATHS ENV AMENT_PREFIX_PATH NO_DEFAULT_PATH)

if(DEFINED SKBUILD OR NOT sourced_ros)
  # The interpreter of the active virtual environment, not a newer one of the system.
  set(Python3_FIND_VIRTUALENV FIRST)
  find_package(Python3 REQUIRED COMPONENTS Interpreter Development)
  execute_process(
    COMMAND "${Python3_EXECUTABLE}" -c "
from importlib.metadata import PackageNotFoundError, files
try:
    print(next(f.locate().resolve().parents[3] for f in files('ros-ament-cmake') if f.name == 'ament_cmakeConfig.cmake'))
except (PackageNotFoundError, StopIteration):
    pass"
    OUTPUT_VARIABLE ros_wheels OUTPUT_STRIP_TRAILING_WHITESPACE)
  if(NOT ros_wheels)
    message(FATAL_ERROR
      "No ROS 2 to build ${PROJECT_NAME} with. Source an installation (source /opt/ros/<distro>/setup.bash), or run"
      " 'make env' in the repository, which installs the wheels that pyproject.toml names.")
  endif()
  list(PREPEND CMAKE_PREFIX_PATH "${ros_wheels}")
  set(ENV{AMENT_PREFIX_PATH} "${ros_wheels}:$ENV{AMENT_PREFIX_PATH}")
  set(PYTHON_INSTALL_DIR "lib/python${Python3_VERSION_MAJOR}.${Python3_VERSION_MINOR}/site-packages")
endif()

# Targets of the wheels name include directories of the machine that built them. CMake makes a missing directory of an
# imported target an error: drop these, once every package has been found.
function(drop_missing_include_directories)
  get_property(targets DIRECTORY PROPERTY IMPORTED_TARGETS)
  foreach(target IN LISTS targets)
    get_target_property(directories ${target} INTERFACE_INCLUDE_DIRECTORIES)
    if(directories)
      set(present "")
      foreach(directory IN LISTS directories)
        if(directory MATCHES "\\$<" OR EXISTS "${directory}")
          list(APPEND present "${directory}")
        endif()
      endforeach()
      set_target_properties(${target} PROPERTIES INTERFACE_INCLUDE_DIRECTORIES "${present}")
    endif()
  endforeach()
endfunction()
cmake_language(DEFER CALL drop_missing_include_directories)

# Without a sourced ROS installation the only users are rclpy and the middleware that comes with its wheels, Fast DDS: the C++
# messages are left out, and the rest is compiled in few translation units. That takes half of the time. Fast DDS needs the
# introspection type support too. With a sourced installation everything is generated.
macro(generate_for_python_only)
  if(DEFINED ros_wheels)
    list(FILTER AMENT_EXTENSIONS_rosidl_generate_idl_interfaces EXCLUDE REGEX "cpp")
    set(CMAKE_C_FLAGS_RELEASE "-O1 -DNDEBUG")
    set(CMAKE_CXX_FLAGS_RELEASE "-O1 -DNDEBUG")
    cmake_language(DEFER CALL join_translation_units)
  endif()
endmacro()

function(join_translation_units)
  foreach(part generator_c typesupport_fastrtps_c typesupport_introspection_c typesupport_c generator_py)
    set(target ${PROJECT_NAME}__rosidl_${part})
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 24)
    get_target_property(sources ${target} SOURCES)
    list(FILTER sources INCLUDE REGEX "__description[.]c$")  # these define static symbols of the same names
    set_source_files_properties(${sources} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  endforeach()
endfunction()
