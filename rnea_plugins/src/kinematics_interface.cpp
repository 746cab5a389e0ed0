// Back end of kinematics_interface: kinematics of an exported robot. Parameters: docs/cpp_plugins.md.

#include <kinematics_interface/kinematics_interface.hpp>
#include <pluginlib/class_list_macros.hpp>

#include "kinematics.hpp"

namespace rnea_plugins
{

class KinematicsInterface : public Kinematics<kinematics_interface::KinematicsInterface> {};

}  // namespace rnea_plugins

PLUGINLIB_EXPORT_CLASS(rnea_plugins::KinematicsInterface, kinematics_interface::KinematicsInterface)
