// Back end of dynamics_interface: kinematics and dynamics of an exported robot. Parameters: docs/cpp_plugins.md.

#include <string>

#include <dynamics_interface/dynamics_interface.hpp>
#include <pluginlib/class_list_macros.hpp>

#include "kinematics.hpp"

namespace rnea_plugins
{

class DynamicsInterface : public Kinematics<dynamics_interface::DynamicsInterface>
{
public:
  bool calculate_inertia(const Eigen::VectorXd & joint_pos, Eigen::MatrixXd & inertia) override
  {
    if (!at(joint_pos) || !sized(inertia, "inertia", robot_->n(), robot_->n())) {
      return false;
    }
    inertia = robot_->inertia();
    return true;
  }

  bool calculate_coriolis(
    const Eigen::VectorXd & joint_pos, const Eigen::VectorXd & joint_vel, Eigen::VectorXd & coriolis) override
  {
    if (!at(joint_pos) || !sized(joint_vel, "joint_vel") || !sized(coriolis, "coriolis")) {
      return false;
    }
    coriolis = robot_->coriolis(joint_vel);
    return true;
  }

  bool calculate_gravity(const Eigen::VectorXd & joint_pos, Eigen::VectorXd & gravity) override
  {
    if (!at(joint_pos) || !sized(gravity, "gravity")) {
      return false;
    }
    gravity = robot_->gravity();
    return true;
  }

  bool calculate_jacobian_derivative(
    const Eigen::VectorXd & joint_pos, const Eigen::VectorXd & joint_vel, const std::string & link_name,
    Jacobian & jacobian_derivative) override
  {
    if (!at(joint_pos, link_name) || !sized(joint_vel, "joint_vel") ||
      !sized(jacobian_derivative, "jacobian_derivative", 6, robot_->n()))
    {
      return false;
    }
    jacobian_derivative = robot_->link_motion(link_name, &joint_vel).jacobian_rate;
    return true;
  }
};

}  // namespace rnea_plugins

PLUGINLIB_EXPORT_CLASS(rnea_plugins::DynamicsInterface, dynamics_interface::DynamicsInterface)
