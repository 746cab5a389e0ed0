// Stand-in for the base class of dynamics plugins.
#pragma once

#include <string>

#include "kinematics_interface/kinematics_interface.hpp"

namespace dynamics_interface
{

class DynamicsInterface : public kinematics_interface::KinematicsInterface
{
public:
  virtual bool calculate_inertia(const Vector & joint_pos, Eigen::MatrixXd & inertia) = 0;
  virtual bool calculate_coriolis(const Vector & joint_pos, const Vector & joint_vel, Vector & coriolis) = 0;
  virtual bool calculate_gravity(const Vector & joint_pos, Vector & gravity) = 0;
  virtual bool calculate_jacobian_derivative(
    const Vector & joint_pos, const Vector & joint_vel, const std::string & link_name,
    Eigen::Matrix<double, 6, Eigen::Dynamic> & jacobian_derivative) = 0;
};

}  // namespace dynamics_interface
