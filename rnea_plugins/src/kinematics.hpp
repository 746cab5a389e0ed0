// Kinematics of an exported robot as kinematics_interface asks for them, for any interface that is derived from it.
#pragma once

#include <memory>
#include <stdexcept>
#include <string>

#include "exported_robot.hpp"
#include "rclcpp/logging.hpp"

namespace rnea_plugins
{

template<class Interface>
class Kinematics : public Interface
{
public:
  bool initialize(
    const std::string & robot_description, std::shared_ptr<Parameters> parameters, const std::string & param_namespace) override
  {
    try {
      robot_ = std::make_unique<ExportedRobot>(*parameters, param_namespace, robot_description, true);
      const auto name = (param_namespace.empty() ? "" : param_namespace + ".") + "alpha";
      rclcpp::Parameter damping(name, 5e-6);
      if (parameters->has_parameter(name)) {
        parameters->get_parameter(name, damping);
      }
      damping_ = damping.as_double();
      if (!(damping_ >= 0.0)) {
        throw std::runtime_error(name + " is " + std::to_string(damping_) + "; zero or more is needed");
      }
      return true;
    } catch (const std::runtime_error & error) {
      robot_.reset();
      return refuse(error.what());
    }
  }

  bool convert_cartesian_deltas_to_joint_deltas(
    const Eigen::VectorXd & joint_pos, const Eigen::Matrix<double, 6, 1> & delta_x, const std::string & link_name,
    Eigen::VectorXd & delta_theta) override
  {
    if (!at(joint_pos, link_name) || !sized(delta_theta, "delta_theta")) {
      return false;
    }
    delta_theta = inverse(robot_->link_motion(link_name).jacobian) * delta_x;
    return true;
  }

  bool convert_joint_deltas_to_cartesian_deltas(
    const Eigen::VectorXd & joint_pos, const Eigen::VectorXd & delta_theta, const std::string & link_name,
    Eigen::Matrix<double, 6, 1> & delta_x) override
  {
    if (!at(joint_pos, link_name) || !sized(delta_theta, "delta_theta")) {
      return false;
    }
    delta_x = robot_->link_motion(link_name).jacobian * delta_theta;
    return true;
  }

  bool calculate_link_transform(
    const Eigen::VectorXd & joint_pos, const std::string & link_name, Eigen::Isometry3d & transform) override
  {
    if (!at(joint_pos, link_name)) {
      return false;
    }
    const auto motion = robot_->link_motion(link_name);
    transform.setIdentity();
    transform.linear() = motion.rotation;
    transform.translation() = motion.position;
    return true;
  }

  bool calculate_jacobian(const Eigen::VectorXd & joint_pos, const std::string & link_name, Jacobian & jacobian) override
  {
    if (!at(joint_pos, link_name) || !sized(jacobian, "jacobian", 6, robot_->n())) {
      return false;
    }
    jacobian = robot_->link_motion(link_name).jacobian;
    return true;
  }

  bool calculate_jacobian_inverse(
    const Eigen::VectorXd & joint_pos, const std::string & link_name,
    Eigen::Matrix<double, Eigen::Dynamic, 6> & jacobian_inverse) override
  {
    if (!at(joint_pos, link_name) || !sized(jacobian_inverse, "jacobian_inverse", robot_->n(), 6)) {
      return false;
    }
    jacobian_inverse = inverse(robot_->link_motion(link_name).jacobian);
    return true;
  }

  // Not in every version of the interface, so not marked as override.
  bool calculate_frame_difference(
    Eigen::Matrix<double, 7, 1> & x_a, Eigen::Matrix<double, 7, 1> & x_b, double dt, Eigen::Matrix<double, 6, 1> & delta_x)
  {
    if (!(dt > 0.0)) {
      return refuse("the period is " + std::to_string(dt) + " s; a positive one is needed");
    }
    const auto orientation = [](const Eigen::Matrix<double, 7, 1> & x) {
        return Eigen::Quaterniond(x(6), x(3), x(4), x(5)).normalized();
      };
    const Eigen::AngleAxisd turn(orientation(x_b) * orientation(x_a).conjugate());
    delta_x << (x_b - x_a).head<3>() / dt, turn.axis() * (turn.angle() / dt);
    return true;
  }

protected:
  // Sets the pose; false with a log line where positions or link are not valid.
  bool at(const Eigen::VectorXd & joint_pos, const std::string & link_name)
  {
    if (!robot_) {
      return refuse("not initialized: call initialize() first");
    }
    if (!robot_->has_link(link_name) && link_name != robot_->base()) {
      return refuse("link '" + link_name + "' is none of the links of the library (" + robot_->links() + "): export the robot with "
               "--link " + link_name);
    }
    if (!sized(joint_pos, "joint_pos")) {
      return false;
    }
    return robot_->set_positions(joint_pos) || refuse("the loops of the robot cannot be closed at these joint positions");
  }
  bool at(const Eigen::VectorXd & joint_pos) {return at(joint_pos, robot_ ? robot_->base() : "");}

  template<typename Matrix>
  bool sized(const Matrix & values, const std::string & name, Eigen::Index rows, Eigen::Index columns) const
  {
    const auto size = [](Eigen::Index r, Eigen::Index c) {return std::to_string(r) + " x " + std::to_string(c);};
    return (values.rows() == rows && values.cols() == columns) ||
           refuse(name + " has size " + size(values.rows(), values.cols()) + "; " + size(rows, columns) + " is needed");
  }
  bool sized(const Eigen::VectorXd & values, const std::string & name) const {return sized(values, name, robot_->n(), 1);}

  std::unique_ptr<ExportedRobot> robot_;

private:
  static bool refuse(const std::string & reason)
  {
    RCLCPP_ERROR(rclcpp::get_logger("rnea_kinematics"), "%s", reason.c_str());
    return false;
  }

  // Damped pseudo-inverse.
  Eigen::Matrix<double, Eigen::Dynamic, 6> inverse(const Jacobian & J) const
  {
    const Eigen::MatrixXd A = J.transpose() * J + damping_ * Eigen::MatrixXd::Identity(J.cols(), J.cols());
    return A.inverse() * J.transpose();
  }

  double damping_ = 0.0;
};

}  // namespace rnea_plugins
