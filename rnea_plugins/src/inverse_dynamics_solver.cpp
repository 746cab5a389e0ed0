// Back end of inverse_dynamics_solver: torques of an exported robot. Parameters: docs/cpp_plugins.md.

#include <memory>
#include <stdexcept>
#include <string>

#include <inverse_dynamics_solver/exceptions.h>
#include <inverse_dynamics_solver/inverse_dynamics_solver.h>
#include <pluginlib/class_list_macros.hpp>

#include "exported_robot.hpp"

namespace rnea_plugins
{

class InverseDynamicsSolver : public inverse_dynamics_solver::InverseDynamicsSolver
{
public:
  void initialize(
    Parameters::ConstSharedPtr parameters = nullptr, const std::string & param_namespace = "",
    const std::string & robot_description = "") override
  {
    try {
      if (!parameters) {
        throw std::runtime_error("no parameters: give initialize() the node's parameters interface, for parameter library");
      }
      robot_ = std::make_unique<ExportedRobot>(*parameters, param_namespace, robot_description, false);
    } catch (const std::runtime_error & error) {
      throw inverse_dynamics_solver::InvalidParameterValueException(error.what());
    }
  }

  Eigen::MatrixXd getInertiaMatrix(const Eigen::VectorXd & q) const override {return at(q).inertia();}
  Eigen::VectorXd getCoriolisVector(const Eigen::VectorXd & q, const Eigen::VectorXd & qd) const override
  {
    return at(q).coriolis(sized(qd));
  }
  Eigen::VectorXd getGravityVector(const Eigen::VectorXd & q) const override {return at(q).gravity();}
  Eigen::VectorXd getFrictionVector(const Eigen::VectorXd & qd) const override
  {
    return initialized().friction(sized(qd));
  }
  // The whole torque: inertia, Coriolis, gravity and friction.
  Eigen::VectorXd getTorques(const Eigen::VectorXd & q, const Eigen::VectorXd & qd, const Eigen::VectorXd & qdd) const override
  {
    return at(q).torque(sized(qd), sized(qdd));
  }

private:
  ExportedRobot & initialized() const
  {
    if (!robot_) {
      throw inverse_dynamics_solver::UninitializedException();
    }
    return *robot_;
  }

  const Eigen::VectorXd & sized(const Eigen::VectorXd & values) const
  {
    if (values.size() != initialized().n()) {
      throw std::invalid_argument("a vector has " + std::to_string(values.size()) + " numbers; " + std::to_string(robot_->n()) +
              ", one for each joint, are needed");
    }
    return values;
  }

  // Returns the robot at a pose.
  const ExportedRobot & at(const Eigen::VectorXd & q) const
  {
    if (!initialized().set_positions(sized(q))) {
      throw std::runtime_error("the loops of the robot cannot be closed at these joint positions");
    }
    return *robot_;
  }

  std::unique_ptr<ExportedRobot> robot_;
};

}  // namespace rnea_plugins

PLUGINLIB_EXPORT_CLASS(rnea_plugins::InverseDynamicsSolver, inverse_dynamics_solver::InverseDynamicsSolver)
