// Stand-in for the base class of kinematics plugins.
#pragma once

#include <memory>
#include <string>

#include <Eigen/Core>
#include <Eigen/Geometry>
#include <Eigen/LU>

#include "rclcpp/logging.hpp"
#include "rclcpp/node_interfaces/node_parameters_interface.hpp"

namespace kinematics_interface
{

using Vector6d = Eigen::Matrix<double, 6, 1>;

class KinematicsInterface
{
public:
  using Vector = Eigen::VectorXd;
  using Vector7d = Eigen::Matrix<double, 7, 1>;

  virtual ~KinematicsInterface() = default;
  virtual bool initialize(
    const std::string & robot_description, std::shared_ptr<rclcpp::node_interfaces::NodeParametersInterface> parameters_interface,
    const std::string & param_namespace) = 0;
  virtual bool convert_cartesian_deltas_to_joint_deltas(
    const Vector & joint_pos, const Vector6d & delta_x, const std::string & link_name, Vector & delta_theta) = 0;
  virtual bool convert_joint_deltas_to_cartesian_deltas(
    const Vector & joint_pos, const Vector & delta_theta, const std::string & link_name, Vector6d & delta_x) = 0;
  virtual bool calculate_link_transform(
    const Vector & joint_pos, const std::string & link_name, Eigen::Isometry3d & transform) = 0;
  virtual bool calculate_jacobian(
    const Vector & joint_pos, const std::string & link_name, Eigen::Matrix<double, 6, Eigen::Dynamic> & jacobian) = 0;
  virtual bool calculate_jacobian_inverse(
    const Vector & joint_pos, const std::string & link_name, Eigen::Matrix<double, Eigen::Dynamic, 6> & jacobian_inverse) = 0;
  virtual bool calculate_frame_difference(Vector7d & x_a, Vector7d & x_b, double dt, Vector6d & delta_x) = 0;
};

}  // namespace kinematics_interface
