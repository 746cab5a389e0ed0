// Stand-in for the base class of inverse dynamics solvers.
#pragma once

#include <string>
#include <tuple>

#include <Eigen/Core>

#include "rclcpp/node_interfaces/node_parameters_interface.hpp"

namespace inverse_dynamics_solver
{

class InverseDynamicsSolver
{
public:
  using Vector = Eigen::VectorXd;

  virtual ~InverseDynamicsSolver() = default;
  virtual void initialize(
    rclcpp::node_interfaces::NodeParametersInterface::ConstSharedPtr parameters_interface = nullptr,
    const std::string & param_namespace = "", const std::string & robot_description = "") = 0;
  virtual Eigen::MatrixXd getInertiaMatrix(const Vector & joint_positions) const = 0;
  virtual Vector getCoriolisVector(const Vector & joint_positions, const Vector & joint_velocities) const = 0;
  virtual Vector getGravityVector(const Vector & joint_positions) const = 0;
  virtual Vector getFrictionVector(const Vector & joint_velocities) const = 0;
  virtual std::tuple<Eigen::MatrixXd, Vector, Vector> getDynamicParameters(const Vector & q, const Vector & qd) const
  {
    return {getInertiaMatrix(q), getCoriolisVector(q, qd), getGravityVector(q)};
  }
  virtual Vector getTorques(const Vector & q, const Vector & qd, const Vector & qdd) const
  {
    const auto [inertia, coriolis, gravity] = getDynamicParameters(q, qd);
    return inertia * qdd + coriolis + gravity;
  }

protected:
  InverseDynamicsSolver() = default;
};

}  // namespace inverse_dynamics_solver
