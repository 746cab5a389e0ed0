// Computed torque by KDL and by Pinocchio behind the stand-in headers of rnea_controllers/test: the same loop over the same
// handles as InverseDynamicsController, without torque rates, limits, blending and checks of states.
// The parameter robot_library names a text file: number of joints, gravity, then for each link its joint's pose in the parent
// (rotation row by row, position), axis, mass, centre of mass, inertia about it (xx xy xz yy yz zz).
#include <fstream>
#include <string>
#include <vector>

#ifdef PEER_KDL
#include <kdl/chain.hpp>
#include <kdl/chainidsolver_recursive_newton_euler.hpp>
#include <kdl/jntarray.hpp>
#elif !defined(PEER_NONE)
#include <pinocchio/multibody.hpp>
#include <pinocchio/algorithm/rnea.hpp>
#endif

#include "controller_interface/chainable_controller_interface.hpp"
#include "pluginlib/class_list_macros.hpp"

namespace peer
{

struct LinkData
{
  double R[9], p[3], axis[3], mass, com[3], inertia[6];
};

#ifdef PEER_KDL
class Dynamics
{
public:
  Dynamics(const std::vector<LinkData> & links, const double * gravity)
  {
    for (std::size_t k = 0; k < links.size(); ++k) {
      // A segment of KDL ends in the next joint: its pose stands in the joint of the segment, its tip frame is none.
      const auto & link = links[k];
      const KDL::Rotation R(link.R[0], link.R[1], link.R[2], link.R[3], link.R[4], link.R[5], link.R[6], link.R[7], link.R[8]);
      const KDL::Frame pose(R, KDL::Vector(link.p[0], link.p[1], link.p[2]));
      const KDL::Vector axis = R * KDL::Vector(link.axis[0], link.axis[1], link.axis[2]);
      const auto & i = link.inertia;
      chain.addSegment(KDL::Segment(
          "link" + std::to_string(k), KDL::Joint("joint" + std::to_string(k), pose.p, axis, KDL::Joint::RotAxis), pose,
          KDL::RigidBodyInertia(link.mass, KDL::Vector(link.com[0], link.com[1], link.com[2]),
          KDL::RotationalInertia(i[0], i[3], i[5], i[1], i[2], i[4]))));
    }
    const auto n = static_cast<unsigned>(links.size());
    solver = std::make_unique<KDL::ChainIdSolver_RNE>(chain, KDL::Vector(gravity[0], gravity[1], gravity[2]));
    q.resize(n);
    qd.resize(n);
    qdd.resize(n);
    tau.resize(n);
    wrenches.resize(n);
  }
  void set(std::size_t k, double position, double velocity, double acceleration)
  {
    q(static_cast<unsigned>(k)) = position;
    qd(static_cast<unsigned>(k)) = velocity;
    qdd(static_cast<unsigned>(k)) = acceleration;
  }
  void solve() { solver->CartToJnt(q, qd, qdd, wrenches, tau); }
  double torque(std::size_t k) const { return tau(static_cast<unsigned>(k)); }

private:
  KDL::Chain chain;
  std::unique_ptr<KDL::ChainIdSolver_RNE> solver;
  KDL::JntArray q, qd, qdd, tau;
  KDL::Wrenches wrenches;
};
#elif defined(PEER_NONE)
class Dynamics  // none: what the handles and the feedback take
{
public:
  Dynamics(const std::vector<LinkData> & links, const double *) : tau(links.size()) {}
  void set(std::size_t k, double, double, double acceleration) { tau[k] = acceleration; }
  void solve() {}
  double torque(std::size_t k) const { return tau[k]; }

private:
  std::vector<double> tau;
};
#else
class Dynamics
{
public:
  Dynamics(const std::vector<LinkData> & links, const double * gravity)
  {
    pinocchio::JointIndex parent = 0;
    for (std::size_t k = 0; k < links.size(); ++k) {
      const auto & link = links[k];
      const Eigen::Matrix3d R = Eigen::Map<const Eigen::Matrix<double, 3, 3, Eigen::RowMajor>>(link.R);
      const auto & i = link.inertia;
      Eigen::Matrix3d I;
      I << i[0], i[1], i[2], i[1], i[3], i[4], i[2], i[4], i[5];
      const pinocchio::SE3 pose(R, Eigen::Map<const Eigen::Vector3d>(link.p));
      parent = link.axis[2] == 1.0 ?
        model.addJoint(parent, pinocchio::JointModelRZ(), pose, "joint" + std::to_string(k)) :
        model.addJoint(
        parent, pinocchio::JointModelRevoluteUnaligned(Eigen::Map<const Eigen::Vector3d>(link.axis)), pose,
        "joint" + std::to_string(k));
      model.appendBodyToJoint(
        parent, pinocchio::Inertia(link.mass, Eigen::Map<const Eigen::Vector3d>(link.com), I), pinocchio::SE3::Identity());
    }
    model.gravity.linear() = Eigen::Map<const Eigen::Vector3d>(gravity);
    data = std::make_unique<pinocchio::Data>(model);
    q = qd = qdd = Eigen::VectorXd::Zero(model.nv);
  }
  void set(std::size_t k, double position, double velocity, double acceleration)
  {
    const auto at = static_cast<Eigen::Index>(k);
    q[at] = position;
    qd[at] = velocity;
    qdd[at] = acceleration;
  }
  void solve() { pinocchio::rnea(model, *data, q, qd, qdd); }
  double torque(std::size_t k) const { return data->tau[static_cast<Eigen::Index>(k)]; }

private:
  pinocchio::Model model;
  std::unique_ptr<pinocchio::Data> data;
  Eigen::VectorXd q, qd, qdd;
};
#endif

class ComputedTorque : public controller_interface::ChainableControllerInterface
{
public:
  controller_interface::CallbackReturn on_init() override
  {
    get_node()->declare_parameter<std::string>("robot_library", "");
    get_node()->declare_parameter<std::vector<double>>("stiffness", {});
    get_node()->declare_parameter<std::vector<double>>("damping", {});
    return controller_interface::CallbackReturn::SUCCESS;
  }
  controller_interface::CallbackReturn on_configure(const rclcpp_lifecycle::State &) override
  {
    std::ifstream file(get_node()->get_parameter("robot_library").as_string());
    std::size_t n = 0;
    double gravity[3];
    file >> n >> gravity[0] >> gravity[1] >> gravity[2];
    std::vector<LinkData> links(n);
    for (auto & link : links) {
      for (auto * x = link.R; x != link.R + sizeof(LinkData) / sizeof(double); ++x) {
        file >> *x;
      }
    }
    if (!file) {
      return controller_interface::CallbackReturn::FAILURE;
    }
    dynamics_ = std::make_unique<Dynamics>(links, gravity);
    n_ = n;
    stiffness_ = get_node()->get_parameter("stiffness").as_double_array()[0];
    damping_ = get_node()->get_parameter("damping").as_double_array()[0];
    return controller_interface::CallbackReturn::SUCCESS;
  }
  controller_interface::InterfaceConfiguration command_interface_configuration() const override { return names({"effort"}); }
  controller_interface::InterfaceConfiguration state_interface_configuration() const override
  {
    return names({"position", "velocity"});
  }

protected:
  std::vector<hardware_interface::CommandInterface::SharedPtr> on_export_reference_interfaces_list() override
  {
    for (std::size_t k = 0; k < n_; ++k) {
      for (const auto * name : {"position", "velocity", "acceleration"}) {
        references_.push_back(std::make_shared<hardware_interface::CommandInterface>("controller/" + std::to_string(k), name));
      }
    }
    return references_;
  }
  controller_interface::return_type update_reference_from_subscribers(
    const rclcpp::Time &, const rclcpp::Duration &) override { return controller_interface::return_type::OK; }
  controller_interface::return_type update_and_write_commands(const rclcpp::Time &, const rclcpp::Duration &) override
  {
    bool written = true;
    for (std::size_t k = 0; k < n_; ++k) {
      const double q = state_interfaces_[2 * k].get_optional().value_or(0.0);
      const double qd = state_interfaces_[2 * k + 1].get_optional().value_or(0.0);
      const double e = references_[3 * k]->get_optional().value_or(0.0) - q;
      const double ed = references_[3 * k + 1]->get_optional().value_or(0.0) - qd;
      dynamics_->set(k, q, qd, references_[3 * k + 2]->get_optional().value_or(0.0) + stiffness_ * e + damping_ * ed);
    }
    dynamics_->solve();
    for (std::size_t k = 0; k < n_; ++k) {
      written = command_interfaces_[k].set_value(dynamics_->torque(k)) && written;
    }
    return written ? controller_interface::return_type::OK : controller_interface::return_type::ERROR;
  }

private:
  controller_interface::InterfaceConfiguration names(const std::vector<std::string> & kinds) const
  {
    controller_interface::InterfaceConfiguration found{controller_interface::interface_configuration_type::INDIVIDUAL, {}};
    for (std::size_t k = 0; k < n_; ++k) {
      for (const auto & kind : kinds) {
        found.names.push_back("joint" + std::to_string(k) + "/" + kind);
      }
    }
    return found;
  }
  std::unique_ptr<Dynamics> dynamics_;
  std::vector<hardware_interface::CommandInterface::SharedPtr> references_;
  std::size_t n_ = 0;
  double stiffness_ = 0.0, damping_ = 0.0;
};

}  // namespace peer

PLUGINLIB_EXPORT_CLASS(peer::ComputedTorque, controller_interface::ChainableControllerInterface)
