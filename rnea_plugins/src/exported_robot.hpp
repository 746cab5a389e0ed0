// Kinematics and dynamics of an exported robot (`rnea export --shared`) in Eigen, for the joints between two of its links.
#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include <Eigen/Dense>

#include "rclcpp/node_interfaces/node_parameters_interface.hpp"
#include "rnea_controllers/robot_library.hpp"

namespace rnea_plugins
{

using Jacobian = Eigen::Matrix<double, 6, Eigen::Dynamic>;  // linear before angular, of the origin of a link
using Parameters = rclcpp::node_interfaces::NodeParametersInterface;

// Pose of a link in the base, its Jacobian, and the time derivative of the Jacobian where velocities were given.
struct LinkMotion
{
  Eigen::Matrix3d rotation = Eigen::Matrix3d::Identity();
  Eigen::Vector3d position = Eigen::Vector3d::Zero();
  Jacobian jacobian, jacobian_rate;
};

// Exported robot at a pose. Joints that are not between base and tip rest at the start pose of the library. Not thread-safe.
class ExportedRobot
{
public:
  // Reads the parameters library, tip and base. Throws std::runtime_error with the parameter, its value and the remedy.
  // Without tip, which only `tip_needed` requires, all joints of the robot are chosen.
  ExportedRobot(const Parameters & parameters, const std::string & name_space, const std::string & description, bool tip_needed)
  : prefix_(name_space.empty() ? "" : name_space + "."),
    library_(prefix_ + "library", text(parameters, prefix_ + "library")), api_(library_.api())
  {
    if (!api_.inverse_dynamics || !api_.bias) {
      throw std::runtime_error("the library of " + prefix_ + "library has no inverse_dynamics or bias: export it without --only");
    }
    q_ = Eigen::Map<const Eigen::VectorXd>(api_.start_pose, api_.n_q);
    for (std::int32_t joint = 0; joint < api_.n; ++joint) {
      joints_.push_back(joint);
    }
    project();
    check_motors();
    base_ = text(parameters, prefix_ + "base");
    tip_ = text(parameters, prefix_ + "tip");
    base_ = base_.empty() ? api_.root_link : base_;
    require(base_, "base");
    if (tip_needed || !tip_.empty()) {
      require(tip_, "tip");
      const auto all = link_motion(tip_);
      joints_.clear();
      for (std::int32_t joint = 0; joint < api_.n; ++joint) {
        if (all.jacobian.col(joint).cwiseAbs().maxCoeff() > ZERO_COLUMN) {
          joints_.push_back(joint);
        }
      }
      if (joints_.empty()) {
        throw std::runtime_error(prefix_ + "tip is '" + tip_ + "', which no joint moves relative to '" + base_ + "'");
      }
      project();
    }
    check_description(description.empty() ? text(parameters, "robot_description") : description);
    check_gravity(parameters);
  }

  Eigen::Index n() const {return static_cast<Eigen::Index>(joints_.size());}
  const std::string & base() const {return base_;}
  bool has_link(const std::string & name) const {return name == api_.root_link || find(name);}

  // Links by name, for messages.
  std::string links() const
  {
    std::string names = api_.root_link;
    for (std::int32_t k = 0; k < api_.link_count; ++k) {
      names += std::string(", ") + api_.links[k].name;
    }
    return names;
  }

  // Sets the positions of the joints. Loops are followed from the pose before; false where they cannot be closed on the way.
  bool set_positions(const Eigen::VectorXd & q)
  {
    Eigen::VectorXd from(n());
    for (Eigen::Index k = 0; k < n(); ++k) {
      from(k) = q_(api_.active[joints_[k]]);
    }
    const double distance = api_.has_loops ? (q - from).cwiseAbs().maxCoeff() : 0.0;
    if (!(distance < MAX_DISTANCE)) {  // NaN too
      return false;
    }
    const int steps = 1 + static_cast<int>(distance / MAX_STEP);
    for (int step = 1; step <= steps; ++step) {
      for (Eigen::Index k = 0; k < n(); ++k) {
        q_(api_.active[joints_[k]]) = step < steps ? from(k) + step * (q(k) - from(k)) / steps : q(k);
      }
      if (api_.has_loops && !close()) {
        q_ = Eigen::Map<const Eigen::VectorXd>(api_.start_pose, api_.n_q);
        return false;
      }
    }
    if (api_.has_loops) {
      project();
    }
    return true;
  }

  // Motion of a link relative to the base; the rate of the Jacobian for joint velocities, if they are given.
  LinkMotion link_motion(const std::string & name, const Eigen::VectorXd * qd = nullptr) const
  {
    const LinkMotion a = in_root(base_, qd), b = in_root(name, qd);
    const Eigen::Matrix3d turn = a.rotation.transpose();
    const Eigen::Vector3d d = b.position - a.position;
    const auto linear = [](const Jacobian & J) {return J.topRows<3>();};
    const auto angular = [](const Jacobian & J) {return J.bottomRows<3>();};
    LinkMotion found{turn * b.rotation, turn * d, Jacobian(6, n()), Jacobian(6, n())};
    const Eigen::Matrix3Xd v = linear(b.jacobian) - linear(a.jacobian) + skew(d) * angular(a.jacobian);
    const Eigen::Matrix3Xd w = angular(b.jacobian) - angular(a.jacobian);
    found.jacobian << turn * v, turn * w;
    if (qd) {
      const Eigen::Vector3d d_rate = (linear(b.jacobian) - linear(a.jacobian)) * *qd;
      const Eigen::Matrix3d spin = skew(angular(a.jacobian) * *qd);
      found.jacobian_rate << turn * (linear(b.jacobian_rate) - linear(a.jacobian_rate) + skew(d_rate) * angular(a.jacobian) +
        skew(d) * angular(a.jacobian_rate) - spin * v), turn * (angular(b.jacobian_rate) - angular(a.jacobian_rate) - spin * w);
    }
    return found;
  }

  // Torques with friction, of all joints that were chosen.
  Eigen::VectorXd torque(const Eigen::VectorXd & qd, const Eigen::VectorXd & qdd) const
  {
    const Eigen::VectorXd all_qd = all(qd), all_qdd = all(qdd);
    Eigen::VectorXd tau(api_.n);
    api_.inverse_dynamics(q_.data(), all_qd.data(), all_qdd.data(), nullptr, tau.data());
    return chosen(tau);
  }

  Eigen::MatrixXd inertia() const
  {
    Eigen::MatrixXd found(n(), n());
    if (api_.mass_matrix) {
      Eigen::MatrixXd M(api_.n, api_.n);  // symmetric: rows are columns
      api_.mass_matrix(q_.data(), nullptr, M.data());
      for (Eigen::Index k = 0; k < n(); ++k) {
        found.col(k) = chosen(M.col(joints_[k]));
      }
      return found;
    }
    const Eigen::VectorXd zero = Eigen::VectorXd::Zero(n());
    for (Eigen::Index k = 0; k < n(); ++k) {
      found.col(k) = torque(zero, Eigen::VectorXd::Unit(n(), k)) - torque(zero, zero);
    }
    return found;
  }

  // Static torques: gravity, and springs inside of loops.
  Eigen::VectorXd gravity() const
  {
    const Eigen::VectorXd zero = Eigen::VectorXd::Zero(n());
    return bias(zero) - own_friction(zero);
  }

  // Coriolis and centrifugal torques: the part of the torque that is even in the velocities. Friction is odd, up to offsets.
  Eigen::VectorXd coriolis(const Eigen::VectorXd & qd) const
  {
    return 0.5 * (bias(qd) - own_friction(qd) + bias(-qd) - own_friction(-qd)) - gravity();
  }

  // Friction and offsets at the last pose; without the part by the load where the library has a function for friction.
  Eigen::VectorXd friction(const Eigen::VectorXd & qd) const
  {
    return api_.friction ? own_friction(qd) : Eigen::VectorXd(0.5 * (bias(qd) - bias(-qd)));
  }

private:
  static constexpr double ZERO_COLUMN = 1e-9;  // of a Jacobian [1, m]: the joint does not move the link
  static constexpr double CLOSED = 1e-9, OPEN = 1e3;  // gap of the loops before a step of Newton's method [m, rad]
  static constexpr double MAX_STEP = 0.1, MAX_DISTANCE = 100.0;  // of a joint, while loops are followed [rad, m]
  static constexpr int MAX_ITERATIONS = 50;
  static constexpr double GRAVITY_TOL = 0.05;  // m/s^2

  static Eigen::Matrix3d skew(const Eigen::Vector3d & v)
  {
    return (Eigen::Matrix3d() << 0.0, -v.z(), v.y(), v.z(), 0.0, -v.x(), -v.y(), v.x(), 0.0).finished();
  }

  static std::string text(const Parameters & parameters, const std::string & name)
  {
    rclcpp::Parameter found;
    const bool given = parameters.has_parameter(name) && parameters.get_parameter(name, found);
    return given && found.get_type() != rclcpp::ParameterType::PARAMETER_NOT_SET ? found.as_string() : "";
  }

  // Closes the loops by Newton's method; false where it does not converge.
  bool close()
  {
    Eigen::VectorXd closed(q_.size());
    double gap = OPEN, indicator = 0.0;
    for (int k = 0; gap > CLOSED && k < MAX_ITERATIONS; ++k) {
      api_.close_step(q_.data(), closed.data(), &gap, &indicator);
      if (!(gap < OPEN && indicator <= 1.0)) {  // NaN too
        return false;
      }
      q_ = closed;
    }
    return gap <= CLOSED;
  }

  const rnea_link * find(const std::string & name) const
  {
    for (std::int32_t k = 0; k < api_.link_count; ++k) {
      const auto & link = api_.links[k];
      if (name == link.name && link.pose && link.jacobian && link.jacobian_rate) {
        return &link;
      }
    }
    return nullptr;
  }

  void require(const std::string & link, const std::string & parameter) const
  {
    if (!has_link(link)) {
      throw std::runtime_error(prefix_ + parameter + " is '" + link + "', which is none of the links of the library (" + links() +
              "): export the robot with --link " + (link.empty() ? "LINK" : link));
    }
  }

  // Refuses joints whose motion follows from springs: their torque does not depend on their acceleration.
  void check_motors() const
  {
    const Eigen::VectorXd zero = Eigen::VectorXd::Zero(n());
    for (Eigen::Index k = 0; k < n(); ++k) {
      if (!((torque(zero, Eigen::VectorXd::Unit(n(), k)) - torque(zero, zero))(k) > 0.0)) {
        throw std::runtime_error("joint '" + std::string(api_.joint_names[joints_[k]]) + "' of the library of " + prefix_ +
                "library has no motor or no mass: its motion follows from springs, which this interface cannot express; export "
                "the robot without its spring");
      }
    }
  }

  void check_description(const std::string & description) const
  {
    if (description.empty()) {
      throw std::runtime_error("robot_description is empty: give the URDF from which the library was exported");
    }
    for (const auto joint : joints_) {
      const std::string name = api_.joint_names[joint];
      if (description.find('"' + name + '"') == std::string::npos && description.find("'" + name + "'") == std::string::npos) {
        throw std::runtime_error("robot_description has no joint '" + name + "' of the library of " + prefix_ + "library: export "
                "the library from this description");
      }
    }
  }

  // Compares the parameter gravity, which other back ends need, with that of the library.
  void check_gravity(const Parameters & parameters) const
  {
    rclcpp::Parameter given;
    if (parameters.has_parameter(prefix_ + "gravity") && parameters.get_parameter(prefix_ + "gravity", given)) {
      const auto values = given.as_double_array();
      const Eigen::Vector3d g = in_root(base_, nullptr).rotation.transpose() * Eigen::Map<const Eigen::Vector3d>(api_.gravity_vector);
      if (values.size() != 3 || !((Eigen::Map<const Eigen::Vector3d>(values.data()) - g).norm() < GRAVITY_TOL)) {
        throw std::runtime_error(prefix_ + "gravity is not that of the library, (" + std::to_string(g.x()) + ", " + std::to_string(
                  g.y()) + ", " + std::to_string(g.z()) + ") m/s^2 in '" + base_ + "': leave it out, or export with this gravity");
      }
    }
  }

  Eigen::VectorXd all(const Eigen::VectorXd & values) const
  {
    Eigen::VectorXd found = Eigen::VectorXd::Zero(api_.n);
    for (Eigen::Index k = 0; k < n(); ++k) {
      found(joints_[k]) = values(k);
    }
    return found;
  }

  Eigen::VectorXd chosen(const Eigen::VectorXd & values) const
  {
    Eigen::VectorXd found(n());
    for (Eigen::Index k = 0; k < n(); ++k) {
      found(k) = values(joints_[k]);
    }
    return found;
  }

  Eigen::VectorXd bias(const Eigen::VectorXd & qd) const
  {
    const Eigen::VectorXd all_qd = all(qd);
    Eigen::VectorXd tau(api_.n);
    api_.bias(q_.data(), all_qd.data(), nullptr, tau.data());
    return chosen(tau);
  }

  // Friction and offsets of the joints by the library; zero where it has no function for them.
  Eigen::VectorXd own_friction(const Eigen::VectorXd & qd) const
  {
    Eigen::VectorXd tau = Eigen::VectorXd::Zero(api_.n), rate(api_.n);
    if (api_.friction) {
      const Eigen::VectorXd all_qd = all(qd), zero = Eigen::VectorXd::Zero(api_.n);
      api_.friction(all_qd.data(), zero.data(), tau.data(), rate.data());
    }
    return chosen(tau);
  }

  // Accelerations of all joints of the tree for velocities of the chosen ones, without accelerations of these.
  Eigen::VectorXd tree_motion(const Eigen::VectorXd & qd, Eigen::VectorXd & qd_tree) const
  {
    const Eigen::VectorXd all_qd = all(qd), zero = Eigen::VectorXd::Zero(api_.n);
    Eigen::VectorXd qdd_tree(api_.n_q), qddd_tree(api_.n_q);
    qd_tree.resize(api_.n_q);
    api_.tree_motion(q_.data(), all_qd.data(), zero.data(), zero.data(), qd_tree.data(), qdd_tree.data(), qddd_tree.data());
    return qdd_tree;
  }

  // Computes the matrix that maps velocities of the chosen joints to those of the tree.
  void project()
  {
    projection_ = Eigen::MatrixXd::Zero(api_.n_q, n());
    Eigen::VectorXd column;
    for (Eigen::Index k = 0; k < n(); ++k) {
      if (api_.has_loops) {
        tree_motion(Eigen::VectorXd::Unit(n(), k), column);
        projection_.col(k) = column;
      } else {
        projection_(api_.active[joints_[k]], k) = 1.0;
      }
    }
  }

  // Pose and Jacobian of a link in the root link.
  LinkMotion in_root(const std::string & name, const Eigen::VectorXd * qd) const
  {
    LinkMotion found;
    found.jacobian = found.jacobian_rate = Jacobian::Zero(6, n());
    if (name == api_.root_link) {
      return found;
    }
    const rnea_link & link = *find(name);
    Eigen::Matrix<double, 3, 3, Eigen::RowMajor> rotation;
    Eigen::Matrix<double, 6, Eigen::Dynamic, Eigen::RowMajor> J(6, api_.n_q), J_rate(6, api_.n_q);
    link.pose(q_.data(), rotation.data(), found.position.data());
    link.jacobian(q_.data(), J.data());
    found.rotation = rotation;
    found.jacobian = J * projection_;
    if (qd) {
      const Eigen::VectorXd qd_tree = projection_ * *qd;
      link.jacobian_rate(q_.data(), qd_tree.data(), J_rate.data());
      found.jacobian_rate = J_rate * projection_;
      Eigen::VectorXd unused;
      for (Eigen::Index k = 0; api_.has_loops && k < n(); ++k) {  // column of the projection's rate, by polarization
        const Eigen::VectorXd unit = Eigen::VectorXd::Unit(n(), k);
        found.jacobian_rate.col(k) += 0.25 * J * (tree_motion(*qd + unit, unused) - tree_motion(*qd - unit, unused));
      }
    }
    return found;
  }

  std::string prefix_;
  rnea_controllers::RobotLibrary library_;
  const rnea_robot_api & api_;
  std::string base_, tip_;
  std::vector<std::int32_t> joints_;
  Eigen::VectorXd q_;
  Eigen::MatrixXd projection_;
};

}  // namespace rnea_plugins
