#include "rnea_controllers/inverse_dynamics_controller.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <map>
#include <stdexcept>

#include "hardware_interface/types/hardware_interface_type_values.hpp"
#include "pluginlib/class_list_macros.hpp"

namespace rnea_controllers
{

using controller_interface::CallbackReturn;
using controller_interface::InterfaceConfiguration;
using controller_interface::interface_configuration_type;
using controller_interface::return_type;

namespace
{

constexpr unsigned kGraceCycles = 2;       // cycles without a state that count as the state before
constexpr double kMovingVelocity = 0.01;   // rad/s, m/s: above it a position that never changes is stale
constexpr std::int64_t kRestartTime = 100000000;  // ns: an activation so soon after a deactivation continues its efforts
constexpr double kSlopeTime = 0.01;        // s: time constant of velocities by differences of positions
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
// What is counted, and reported once a second.
enum Event { kMissing, kStale, kFar, kLimited, kUnwritten };
constexpr std::array<const char *, 5> kEvents{
  "joint states are missing or not finite in %llu cycles: the arm is brought to rest, with what is left of them",
  "joint positions do not change although joints move, in %llu cycles: the arm is brought to rest by velocities",
  "references were farther than max_position_error from the joints in %llu cycles: the arm is held at rest until they return",
  "limits of torque or torque rate changed the efforts of %llu cycles",
  "effort interfaces were in use in %llu cycles: the efforts before stay"};
const std::vector<std::string> kReferences{
  hardware_interface::HW_IF_POSITION, hardware_interface::HW_IF_VELOCITY, hardware_interface::HW_IF_ACCELERATION};
const std::vector<std::string> kExported{"effort_rate", "utilization"};
const std::map<std::string, Mode> kModes{
  {"gravity", Mode::kGravity}, {"feedforward", Mode::kFeedforward}, {"computed_torque", Mode::kComputedTorque},
  {"joint_impedance", Mode::kJointImpedance}};
const std::map<std::string, FrictionSource> kFriction{
  {"none", FrictionSource::kNone}, {"reference", FrictionSource::kReference}, {"measured", FrictionSource::kMeasured}};
const std::map<std::string, int> kContents{
  {"total", RNEA_TOTAL}, {"without_gravity", RNEA_WITHOUT_GRAVITY},
  {"without_gravity_and_friction", RNEA_WITHOUT_GRAVITY_AND_FRICTION}};

template<class T>
T choice(const std::string & name, const std::string & value, const std::map<std::string, T> & choices)
{
  const auto found = choices.find(value);
  if (found != choices.end()) {
    return found->second;
  }
  std::string allowed;
  for (const auto & entry : choices) {
    allowed += (allowed.empty() ? "" : ", ") + entry.first;
  }
  throw std::runtime_error("parameter " + name + " is '" + value + "'; allowed: " + allowed);
}

/// Return <joint>/<kind> of all kinds of each joint in turn.
std::vector<std::string> interface_names(const std::vector<std::string> & joints, const std::vector<std::string> & kinds)
{
  std::vector<std::string> found;
  for (const auto & joint : joints) {
    for (const auto & kind : kinds) {
      found.push_back(joint + "/" + kind);
    }
  }
  return found;
}

template<class Handle>
std::vector<std::shared_ptr<Handle>> make_handles(
  const std::string & node, const std::vector<std::string> & joints, const std::vector<std::string> & kinds)
{
  std::vector<std::shared_ptr<Handle>> found;
  for (const auto & joint : joints) {
    for (const auto & kind : kinds) {
      found.push_back(std::make_shared<Handle>(node + "/" + joint, kind));
    }
  }
  return found;
}

double value_or(const std::optional<double> & value, double otherwise) noexcept
{
  return value && std::isfinite(*value) ? *value : otherwise;
}

}  // namespace

CallbackReturn InverseDynamicsController::on_init()
{
  try {
    const auto declare = [this](const std::string & name, const auto & value, const std::string & description, bool fixed) {
        rcl_interfaces::msg::ParameterDescriptor descriptor;
        descriptor.description = description;
        if (fixed) {
          descriptor.additional_constraints = "Read when the controller is configured. One number counts for all joints.";
          fixed_parameters_.insert(name);
        }
        if (!get_node()->has_parameter(name)) {
          get_node()->template declare_parameter<std::decay_t<decltype(value)>>(name, value, descriptor);
        }
      };
    const std::vector<double> none;
    declare("robot_library", std::string(), "Path of the shared library that `rnea export --shared` has written.", true);
    declare(
      "joints", std::vector<std::string>(), "Names of the joints in the hardware, in the robot's order. Empty: its own.", true);
    declare("mode", std::string("computed_torque"), "Control law: gravity, feedforward, computed_torque, joint_impedance.", true);
    declare("stiffness", none, "Gain of position errors [N m/rad, N/m], with computed_torque [1/s^2]. Empty: 0.", true);
    declare("damping", none, "Gain of velocity errors [N m s/rad, N s/m], with computed_torque [1/s]. Empty: 0.", true);
    declare("friction", std::string("reference"), "Velocity whose friction is compensated: reference, measured, none.", true);
    declare(
      "effort_convention", std::string("robot_file"), "What commanded efforts contain: robot_file (as exported), total, "
      "without_gravity, without_gravity_and_friction.", true);
    declare("max_effort", none, "Maximum torque, gravity included, if below the exported one. Empty: that. [N m, N]", true);
    declare("max_effort_rate", none, "Maximum torque rate, if below the exported one. Empty: that. [N m/s, N/s]", true);
    declare(
      "activation_time", 0.5, "Time in which the torque from before the activation fades. 0: within the torque rate. [s]", true);
    declare("state_timeout", 0.5, "Time without states after which update() returns an error. 0: never. [s]", true);
    declare("stale_timeout", 0.1, "Time in which positions may stay the same although a joint moves. 0: any. [s]", true);
    declare(
      "max_position_error", std::vector<double>{1.0}, "Distance of a reference from its joint above which the arm is brought "
      "to rest and held until the reference is nearer. Empty: any. [rad, m]", true);
    declare(
      "catch_up_velocity", none, "Velocity relative to the reference at which joints go back to one that they have left. Empty: a "
      "quarter of the velocity limit, at most 1. [rad/s, m/s]", true);
    declare("payload.mass", 0.0, "Mass of the payload on the link of `rnea export --payload`. At run time. [kg]", false);
    declare("payload.com", std::vector<double>(3, 0.0), "Centre of mass of the payload in the link's frame [m].", false);
    declare(
      "payload.inertia", std::vector<double>(6, 0.0), "ixx, ixy, ixz, iyy, iyz, izz of the payload about its centre of mass, "
      "along the link's axes [kg m^2].", false);
    declare("payload_time", 0.5, "Time in which a new payload replaces the last one [s].", true);
  } catch (const std::exception & error) {
    RCLCPP_ERROR(get_node()->get_logger(), "parameters rejected: %s", error.what());
    return CallbackReturn::ERROR;
  }
  return CallbackReturn::SUCCESS;
}

CallbackReturn InverseDynamicsController::on_configure(const rclcpp_lifecycle::State &)
{
  const auto node = get_node();
  release();
  try {
    library_ = RobotLibrary("robot_library", node->get_parameter("robot_library").as_string());
    const auto & robot = library_.api();
    const auto n = static_cast<std::size_t>(robot.n);
    if (robot.torque_and_rate == nullptr || robot.gravity == nullptr || robot.gravity_and_rate == nullptr) {
      throw std::runtime_error(
              "parameter robot_library names a library without torque_and_rate, gravity or gravity_and_rate; export the robot "
              "without --only");
    }
    joints_ = node->get_parameter("joints").as_string_array();
    if (joints_.empty()) {
      joints_.assign(robot.joint_names, robot.joint_names + n);
    }
    if (joints_.size() != n) {
      throw std::runtime_error(
              "parameter joints has " + std::to_string(joints_.size()) + " names; robot '" + robot.robot_name + "' has " +
              std::to_string(n) + " joints");
    }
    law_ = std::make_unique<TorqueLaw>(robot, read_options(robot));
    q_.assign(n, kNaN);
    qd_ = q_read_ = qd_read_ = q_before_ = qd_before_ = slope_ = q_;
    state_timeout_ = node->get_parameter("state_timeout").as_double();
    stale_timeout_ = node->get_parameter("stale_timeout").as_double();
    cycle_ = get_update_rate() > 0 ? 1.0 / get_update_rate() : 0.0;
    law_->set_payload(read_payload({}));
    law_->bound_errors();
    parameter_callback_ = node->add_on_set_parameters_callback(
      [this](const std::vector<rclcpp::Parameter> & changed) {return on_parameters(changed);});
    report_timer_ = node->create_wall_timer(std::chrono::seconds(1), [this]() {report();});
    RCLCPP_INFO(node->get_logger(), "robot '%s', model %s, exported by %s", robot.robot_name, robot.model_id, robot.exporter);
  } catch (const std::exception & error) {
    RCLCPP_ERROR(node->get_logger(), "not configured: %s", error.what());
    release();
    return CallbackReturn::FAILURE;
  }
  return CallbackReturn::SUCCESS;
}

TorqueLawOptions InverseDynamicsController::read_options(const rnea_robot_api & robot)
{
  const auto node = get_node();
  TorqueLawOptions options;
  options.mode = choice("mode", node->get_parameter("mode").as_string(), kModes);
  options.friction = choice("friction", node->get_parameter("friction").as_string(), kFriction);
  options.stiffness = read_array("stiffness", 0.0);
  options.damping = read_array("damping", 0.0);
  options.max_effort = read_limit("max_effort", robot.effort);
  options.max_effort_rate = read_limit("max_effort_rate", robot.effort_rate);
  options.max_commanded_effort_rate = read_limit("", robot.commanded_effort_rate);
  const auto convention = node->get_parameter("effort_convention").as_string();
  options.contains = convention == "robot_file" ? robot.commanded.contains : choice("effort_convention", convention, kContents);
  options.per_unit.assign(robot.commanded.per_unit, robot.commanded.per_unit + robot.n);
  if (robot.commanded.quantity == RNEA_UNKNOWN_QUANTITY) {
    throw std::runtime_error(
            std::string("the robot file of '") + robot.robot_name + "' does not say what commanded efforts are; declare "
            "commanded_effort there and export the robot again");
  }
  if (options.contains == RNEA_WITHOUT_GRAVITY_AND_FRICTION && robot.friction == nullptr) {
    throw std::runtime_error(
            "efforts without gravity and friction need the friction of the joints, which a robot with loops does not have; "
            "allowed: total, without_gravity");
  }
  options.activation_time = node->get_parameter("activation_time").as_double();
  options.payload_time = node->get_parameter("payload_time").as_double();
  options.max_position_error = read_array("max_position_error", kUnlimited);
  options.catch_up_velocity = read_array("catch_up_velocity", 0.0);
  return options;
}

std::vector<double> InverseDynamicsController::read_array(const std::string & name, double default_value)
{
  const auto n = joints_.size();
  const auto given = get_node()->get_parameter(name).as_double_array();
  if (!given.empty() && given.size() != 1 && given.size() != n) {
    throw std::runtime_error(
            "parameter " + name + " has " + std::to_string(given.size()) + " numbers; allowed: none, 1 or " +
            std::to_string(n));
  }
  for (const double x : given) {
    if (!std::isfinite(x) || x < 0.0) {
      throw std::runtime_error("parameter " + name + " contains " + std::to_string(x) + "; allowed: numbers of at least 0");
    }
  }
  return given.size() == n ? given : std::vector<double>(n, given.empty() ? default_value : given[0]);
}

std::vector<double> InverseDynamicsController::read_limit(const std::string & name, const double * of_the_robot)
{
  auto limit = name.empty() ? std::vector<double>(joints_.size(), kUnlimited) : read_array(name, kUnlimited);
  for (std::size_t k = 0; k < limit.size(); ++k) {
    limit[k] = std::isfinite(of_the_robot[k]) ? std::min(limit[k], of_the_robot[k]) : limit[k];
  }
  return limit;
}

Payload InverseDynamicsController::read_payload(const std::vector<rclcpp::Parameter> & changed) const
{
  const auto get = [this, &changed](const std::string & name) {
      for (const auto & parameter : changed) {
        if (parameter.get_name() == name) {
          return parameter;
        }
      }
      return get_node()->get_parameter(name);
    };
  const double mass = get("payload.mass").as_double();
  const auto com = get("payload.com").as_double_array();
  const auto inertia = get("payload.inertia").as_double_array();
  const auto finite = [](const std::vector<double> & x) {
      return std::all_of(x.begin(), x.end(), [](double number) {return std::isfinite(number);});
    };
  if (!(mass >= 0.0 && std::isfinite(mass)) || com.size() != 3 || inertia.size() != 6 || !finite(com) || !finite(inertia)) {
    throw std::runtime_error(
            "payload.mass must be a number of at least 0, payload.com 3 numbers, payload.inertia 6 numbers (ixx, ixy, ixz, "
            "iyy, iyz, izz)");
  }
  Payload payload{};
  const auto & robot = library_.api();
  if (robot.payload_parameters != nullptr) {
    robot.payload_parameters(mass, com.data(), inertia.data(), payload.data());
  } else if (mass > 0.0) {
    throw std::runtime_error(
            std::string("payload.mass is ") + std::to_string(mass) + ", but robot '" + robot.robot_name + "' was exported "
            "without a payload; export it with --payload LINK");
  }
  return payload;
}

rcl_interfaces::msg::SetParametersResult InverseDynamicsController::on_parameters(
  const std::vector<rclcpp::Parameter> & changed)
{
  rcl_interfaces::msg::SetParametersResult result;
  try {
    bool carries = false;
    for (const auto & parameter : changed) {
      if (fixed_parameters_.count(parameter.get_name()) > 0) {
        throw std::runtime_error(
                "parameter " + parameter.get_name() + " is read when the controller is configured: deactivate it and "
                "clean it up first");
      }
      carries = carries || parameter.get_name().rfind("payload.", 0) == 0;
    }
    if (carries && library_) {
      payload_box_.set(read_payload(changed));
      payload_changed_ = true;
    }
    result.successful = true;
  } catch (const std::exception & error) {
    result.successful = false;
    result.reason = error.what();
  }
  return result;
}

InterfaceConfiguration InverseDynamicsController::command_interface_configuration() const
{
  return {interface_configuration_type::INDIVIDUAL, interface_names(joints_, {hardware_interface::HW_IF_EFFORT})};
}

InterfaceConfiguration InverseDynamicsController::state_interface_configuration() const
{
  return {interface_configuration_type::INDIVIDUAL, interface_names(joints_, {kReferences[0], kReferences[1]})};
}

std::vector<hardware_interface::CommandInterface::SharedPtr> InverseDynamicsController::on_export_reference_interfaces_list()
{
  return references_ = make_handles<hardware_interface::CommandInterface>(get_node()->get_name(), joints_, kReferences);
}

std::vector<hardware_interface::StateInterface::SharedPtr> InverseDynamicsController::on_export_state_interfaces_list()
{
  return exported_ = make_handles<hardware_interface::StateInterface>(get_node()->get_name(), joints_, kExported);
}

CallbackReturn InverseDynamicsController::on_activate(const rclcpp_lifecycle::State &)
{
  if (!read_states()) {
    RCLCPP_ERROR(get_node()->get_logger(), "not activated: a joint has no position or velocity yet; wait for the hardware");
    return CallbackReturn::FAILURE;
  }
  std::vector<double> effort_before;
  bool restarts = !effort_last_.empty() && get_node()->now().nanoseconds() - deactivated_ < kRestartTime;
  for (std::size_t k = 0; k < joints_.size(); ++k) {
    effort_before.push_back(value_or(command_interfaces_[k].get_optional(), kNaN));
    restarts = restarts && effort_before[k] == law_->effort[k];
  }
  effort_before = restarts ? effort_last_ : effort_before;  // the chain was changed, and nothing has commanded since
  law_->q = q_ = q_before_ = q_read_;
  law_->qd = qd_ = qd_before_ = slope_ = qd_read_;
  law_->start(effort_before);
  for (std::size_t k = 0; k < joints_.size(); ++k) {
    bool written = !restarts || command_interfaces_[k].set_value(effort_last_[k]);
    for (std::size_t kind = 0; kind < 3 && !references_.empty(); ++kind) {
      written = references_[3 * k + kind]->set_value(kind == 0 ? q_[k] : 0.0) && written;
    }
    if (!written) {
      RCLCPP_ERROR(get_node()->get_logger(), "not activated: interfaces of %s are in use", joints_[k].c_str());
      return CallbackReturn::FAILURE;
    }
  }
  missing_time_ = q_stale_time_ = qd_stale_time_ = 0.0;
  missed_cycles_ = 0;
  holds_ = false;
  return CallbackReturn::SUCCESS;
}

return_type InverseDynamicsController::update_and_write_commands(const rclcpp::Time &, const rclcpp::Duration & period)
{
  const double elapsed = std::max(0.0, period.seconds());
  // The robot checks steps between messages: a late cycle has no larger step.
  const double dt = cycle_ > 0.0 ? std::min(elapsed, cycle_) : elapsed;
  if (payload_changed_.load(std::memory_order_relaxed) && payload_changed_.exchange(false)) {
    if (const auto payload = payload_box_.try_get()) {
      law_->set_payload(*payload);
    } else {
      payload_changed_ = true;  // the box is in use: in the next cycle
    }
  }
  const bool complete = read_states();
  estimate_states(elapsed);
  missed_cycles_ = complete ? 0 : missed_cycles_ + 1;
  count(kMissing, !complete);
  const bool stale = q_stale_time_ > stale_timeout_;
  count(kStale, stale);
  holds_ = stale || missed_cycles_ > kGraceCycles;
  missing_time_ = holds_ ? missing_time_ + elapsed : 0.0;
  law_->q = q_;
  law_->qd = qd_;
  read_references();
  law_->update(dt, holds_);
  count(kFar, law_->reference().is_far());
  count(kLimited, law_->limited());
  count(kUnwritten, !write_commands());
  return state_timeout_ > 0.0 && missing_time_ > state_timeout_ ? return_type::ERROR : return_type::OK;
}

bool InverseDynamicsController::read_states() noexcept
{
  bool complete = true;
  for (std::size_t k = 0; k < q_.size(); ++k) {
    q_read_[k] = value_or(state_interfaces_[2 * k].get_optional(), kNaN);
    qd_read_[k] = value_or(state_interfaces_[2 * k + 1].get_optional(), kNaN);
    complete = complete && std::isfinite(q_read_[k]) && std::isfinite(qd_read_[k]);
  }
  return complete;
}

void InverseDynamicsController::estimate_states(double dt) noexcept
{
  unsigned moves = 0, q_changes = 0, qd_changes = 0;  // without a branch: each cycle takes the same instructions
  for (std::size_t k = 0; k < q_.size(); ++k) {
    moves |= std::abs(std::isfinite(qd_read_[k]) ? qd_read_[k] : qd_[k]) > kMovingVelocity;
    q_changes |= std::isfinite(q_read_[k]) && q_read_[k] != q_before_[k];
    qd_changes |= std::isfinite(qd_read_[k]) && qd_read_[k] != qd_before_[k];
  }
  // A reading that stays the same although a joint moves is none; after stale_timeout it must change first.
  const auto freshen = [this, moves, dt](double & stale_time, unsigned changes) {
      const bool fresh = changes != 0 || (moves == 0 && stale_time <= stale_timeout_) || !(stale_timeout_ > 0.0);
      stale_time = fresh ? 0.0 : stale_time + dt;
      return fresh;
    };
  const bool q_fresh = freshen(q_stale_time_, q_changes), qd_fresh = freshen(qd_stale_time_, qd_changes);
  const bool by_slope = holds_ || qd_stale_time_ > stale_timeout_;
  const auto & reference = law_->reference();
  for (std::size_t k = 0; k < q_.size(); ++k) {
    const bool has_q = q_fresh && std::isfinite(q_read_[k]), has_qd = qd_fresh && std::isfinite(qd_read_[k]);
    slope_[k] += has_q ? (q_read_[k] - q_before_[k] - slope_[k] * dt) / std::max(kSlopeTime, dt) : 0.0;
    // Without a reading the velocity is taken for that of the reference, which the law makes it; for long, by the positions.
    const double modelled = qd_[k] + reference.qdd[k] * dt + (reference.qd[k] - qd_[k]) * std::min(1.0, dt / kSlopeTime);
    qd_[k] = has_qd ? qd_read_[k] : by_slope && has_q ? slope_[k] : modelled;
    q_[k] = has_q ? q_read_[k] : q_[k] + qd_[k] * dt;
    q_before_[k] = std::isfinite(q_read_[k]) ? q_read_[k] : q_before_[k];
    qd_before_[k] = std::isfinite(qd_read_[k]) ? qd_read_[k] : qd_before_[k];
  }
}

void InverseDynamicsController::read_references() noexcept
{
  // A reference that is not finite: the position stays, velocity and acceleration are zero.
  for (std::size_t k = 0; k < q_.size() && !references_.empty(); ++k) {
    law_->q_ref[k] = value_or(references_[3 * k]->get_optional(), law_->q_ref[k]);
    law_->qd_ref[k] = value_or(references_[3 * k + 1]->get_optional(), 0.0);
    law_->qdd_ref[k] = value_or(references_[3 * k + 2]->get_optional(), 0.0);
  }
}

bool InverseDynamicsController::write_commands() noexcept
{
  bool written = true;
  for (std::size_t k = 0; k < q_.size(); ++k) {
    written = command_interfaces_[k].set_value(law_->effort[k]) && written;
    if (!exported_.empty()) {
      written = exported_[2 * k]->set_value(law_->tau_rate[k]) && written;
      written = exported_[2 * k + 1]->set_value(law_->utilization[k]) && written;
    }
  }
  return written;
}

void InverseDynamicsController::report()
{
  for (std::size_t k = 0; k < kEvents.size(); ++k) {
    const std::uint64_t count = cycles_[k], news = count - reported_[k];
    reported_[k] = count;
    if (news > 0 && k == kLimited) {
      RCLCPP_INFO(get_node()->get_logger(), kEvents[k], static_cast<unsigned long long>(news));
    } else if (news > 0) {
      RCLCPP_WARN(get_node()->get_logger(), kEvents[k], static_cast<unsigned long long>(news));
    }
  }
}

CallbackReturn InverseDynamicsController::on_deactivate(const rclcpp_lifecycle::State &)
{
  effort_last_ = law_->effort;
  deactivated_ = get_node()->now().nanoseconds();
  law_->release();
  bool written = write_commands();
  // joint_trajectory_controller begins where it finds references, of any age; without any it begins at the joints' state.
  for (const auto & reference : references_) {
    written = reference->set_value(kNaN) && written;
  }
  return written ? CallbackReturn::SUCCESS : CallbackReturn::ERROR;
}

CallbackReturn InverseDynamicsController::release()
{
  report_timer_.reset();
  parameter_callback_.reset();
  payload_changed_ = false;
  law_.reset();
  effort_last_.clear();
  library_ = RobotLibrary();
  joints_.clear();
  references_.clear();
  exported_.clear();
  return CallbackReturn::SUCCESS;
}

}  // namespace rnea_controllers

PLUGINLIB_EXPORT_CLASS(
  rnea_controllers::InverseDynamicsController, controller_interface::ChainableControllerInterface)
