#include "rnea_controllers/on_path_trajectory_controller.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <stdexcept>

#include "hardware_interface/types/hardware_interface_type_values.hpp"
#include "pluginlib/class_list_macros.hpp"

namespace rnea_controllers
{

using controller_interface::CallbackReturn;
using controller_interface::InterfaceConfiguration;
using controller_interface::interface_configuration_type;
using controller_interface::return_type;

CallbackReturn OnPathTrajectoryController::on_init()
{
  try {
    const auto declare = [this](const std::string & name, const auto & value, const std::string & description) {
        rcl_interfaces::msg::ParameterDescriptor descriptor;
        descriptor.description = description;
        get_node()->template declare_parameter<std::decay_t<decltype(value)>>(name, value, descriptor);
      };
    const std::vector<std::string> all{
      hardware_interface::HW_IF_POSITION, hardware_interface::HW_IF_VELOCITY, hardware_interface::HW_IF_ACCELERATION};
    declare("joints", std::vector<std::string>(), "Names of the joints.");
    declare("command_joints", std::vector<std::string>(), "Joints of the command interfaces. Empty: joints.");
    declare("command_interfaces", all, "Interfaces that are commanded: position, velocity, acceleration.");
    declare(
      "robot_library", std::string(), "Path of the shared library that `rnea export --shared` has written, whose limits of torque "
      "and torque rate changes of the speed keep. Empty: no limits.");
    declare("change_time", 0.3, "Duration in which the speed reaches the override, pause or stop, within the limits. [s]");
    declare("start_tolerance", 0.01, "Largest step of a reference that a new trajectory may have. [rad, m, and these per s]");
  } catch (const std::exception & error) {
    RCLCPP_ERROR(get_node()->get_logger(), "parameters rejected: %s", error.what());
    return CallbackReturn::ERROR;
  }
  return CallbackReturn::SUCCESS;
}

CallbackReturn OnPathTrajectoryController::on_configure(const rclcpp_lifecycle::State & previous)
{
  on_cleanup(previous);
  const auto node = get_node();
  try {
    joints_ = node->get_parameter("joints").as_string_array();
    command_joints_ = node->get_parameter("command_joints").as_string_array();
    command_joints_ = command_joints_.empty() ? joints_ : command_joints_;
    kinds_ = node->get_parameter("command_interfaces").as_string_array();
    const auto path = node->get_parameter("robot_library").as_string();
    const double change_time = node->get_parameter("change_time").as_double();
    if (joints_.empty() || command_joints_.size() != joints_.size() || kinds_.empty() || !(change_time > 0.0)) {
      throw std::runtime_error(
              "parameters joints, command_joints, command_interfaces and change_time need names of all joints, at least one "
              "interface, and a time above 0");
    }
    library_ = path.empty() ? RobotLibrary() : RobotLibrary("robot_library", path);
    const auto * robot = library_ ? &library_.api() : nullptr;
    if (robot != nullptr && (robot->has_loops || robot->n != static_cast<int>(joints_.size()) ||
      robot->torque_and_rate == nullptr || robot->inverse_dynamics == nullptr))
    {
      throw std::runtime_error("parameter robot_library must name a tree with as many joints, exported without --only");
    }
    player_ = std::make_unique<PathPlayer>(
      joints_.size(), robot, change_time, node->get_parameter("start_tolerance").as_double());
  } catch (const std::exception & error) {
    RCLCPP_ERROR(node->get_logger(), "not configured: %s", error.what());
    return CallbackReturn::FAILURE;
  }
  epoch_ = node->now().nanoseconds();
  trajectories_ = node->create_subscription<trajectory_msgs::msg::JointTrajectory>(
    "~/joint_trajectory", rclcpp::SystemDefaultsQoS(),
    [this](const std::shared_ptr<const trajectory_msgs::msg::JointTrajectory> message) {on_trajectory(*message);});
  overrides_ = node->create_subscription<std_msgs::msg::Float64>(
    "~/override", rclcpp::SystemDefaultsQoS(), [this](const std::shared_ptr<const std_msgs::msg::Float64> message) {
      override_topic_ = std::isfinite(message->data) ? std::min(1.0, std::max(0.0, message->data)) : 0.0;
    });
  report_timer_ = node->create_wall_timer(
    std::chrono::seconds(1), [this]() {
      const std::uint64_t rejected = rejected_;
      if (rejected != reported_) {
        RCLCPP_WARN(get_node()->get_logger(), "a trajectory was rejected: it does not continue the reference");
        reported_ = rejected;
      }
    });
  return CallbackReturn::SUCCESS;
}

std::unique_ptr<Trajectory> OnPathTrajectoryController::read(const trajectory_msgs::msg::JointTrajectory & message) const
{
  auto found = std::make_unique<Trajectory>();
  std::vector<std::size_t> columns;
  for (const auto & joint : joints_) {
    const auto at = std::find(message.joint_names.begin(), message.joint_names.end(), joint);
    if (at == message.joint_names.end()) {
      throw std::runtime_error("joint " + joint + " is missing");
    }
    columns.push_back(static_cast<std::size_t>(at - message.joint_names.begin()));
  }
  const std::int64_t stamp = rclcpp::Time(message.header.stamp.sec, message.header.stamp.nanosec).nanoseconds();
  const std::int64_t start = (stamp ? stamp : get_node()->now().nanoseconds()) - epoch_;
  for (const auto & point : message.points) {
    const auto size = message.joint_names.size();
    if (point.positions.size() != size || point.velocities.size() != size || point.accelerations.size() != size) {
      throw std::runtime_error("points need positions, velocities and accelerations of all joints");
    }
    const std::int64_t nanoseconds = start + point.time_from_start.sec * 1000000000LL + point.time_from_start.nanosec;
    found->times.push_back(1e-9 * static_cast<double>(nanoseconds));
    if (found->times.size() > 1 && !(found->times.back() > *(found->times.end() - 2))) {
      throw std::runtime_error("times of points do not ascend");
    }
    for (const auto column : columns) {
      found->q.push_back(point.positions[column]);
      found->qd.push_back(point.velocities[column]);
      found->qdd.push_back(point.accelerations[column]);
      if (!std::isfinite(found->q.back()) || !std::isfinite(found->qd.back()) || !std::isfinite(found->qdd.back())) {
        throw std::runtime_error("a number is not finite");
      }
    }
  }
  if (std::any_of(found->qd.end() - static_cast<std::ptrdiff_t>(joints_.size()), found->qd.end(), [](double v) {return v != 0.0;})) {
    throw std::runtime_error("the last point moves");
  }
  found->begin = found->times.front();
  return found;
}

void OnPathTrajectoryController::on_trajectory(const trajectory_msgs::msg::JointTrajectory & message)
{
  if (message.points.empty() || !active_) {
    stop_ = true;
    return;
  }
  try {
    auto found = read(message);
    const Trajectory * const next = next_, * const played = playing_;  // in this order: the loop sets them in the other
    const auto * before = next != nullptr ? next : played;
    if (before != nullptr && !idle_) {
      *found = found->after(*before, joints_.size());
    }
    const auto at = std::find_if(kept_.begin(), kept_.end(), [played](const auto & one) {return one.get() == played;});
    kept_.erase(kept_.begin(), at == kept_.end() ? kept_.begin() : at);
    kept_.push_back(std::move(found));
    next_ = kept_.back().get();
  } catch (const std::exception & error) {
    RCLCPP_ERROR(get_node()->get_logger(), "trajectory rejected: %s", error.what());
  }
}

InterfaceConfiguration OnPathTrajectoryController::command_interface_configuration() const
{
  InterfaceConfiguration found{interface_configuration_type::INDIVIDUAL, {}};
  for (const auto & kind : kinds_) {
    for (const auto & joint : command_joints_) {
      found.names.push_back(joint + "/" + kind);
    }
  }
  return found;
}

InterfaceConfiguration OnPathTrajectoryController::state_interface_configuration() const
{
  InterfaceConfiguration found{interface_configuration_type::INDIVIDUAL, {}};
  for (const auto & joint : joints_) {
    found.names.push_back(joint + "/" + hardware_interface::HW_IF_POSITION);
  }
  return found;
}

std::vector<hardware_interface::StateInterface::SharedPtr> OnPathTrajectoryController::on_export_state_interfaces_list()
{
  exported_ = {
    std::make_shared<hardware_interface::StateInterface>(get_node()->get_name(), "rate"),
    std::make_shared<hardware_interface::StateInterface>(get_node()->get_name(), "path_time")};
  return exported_;
}

CallbackReturn OnPathTrajectoryController::on_activate(const rclcpp_lifecycle::State &)
{
  std::vector<double> pose;
  for (const auto & state : state_interfaces_) {
    pose.push_back(state.get_optional().value_or(std::nan("")));
  }
  if (pose.size() != joints_.size() || !std::all_of(pose.begin(), pose.end(), [](double x) {return std::isfinite(x);})) {
    RCLCPP_ERROR(get_node()->get_logger(), "not activated: a joint has no position yet");
    return CallbackReturn::FAILURE;
  }
  next_ = playing_ = nullptr;
  stop_ = false;
  idle_ = true;
  player_->start(pose);
  active_ = true;
  return CallbackReturn::SUCCESS;
}

return_type OnPathTrajectoryController::update_and_write_commands(const rclcpp::Time & time, const rclcpp::Duration & period)
{
  const auto wanted = override_ ? override_->get_optional() : std::nullopt;
  player_->override_rate = wanted && std::isfinite(*wanted) ? *wanted : player_->override_rate;
  if (stop_.exchange(false) && !player_->idle()) {
    player_->stop();
  }
  if (const Trajectory * next = next_) {
    const bool accepted = player_->play(*next);
    rejected_ += accepted ? 0 : 1;
    playing_ = accepted ? next : playing_.load();
    next_.compare_exchange_strong(next, nullptr);
  }
  player_->update(1e-9 * static_cast<double>(time.nanoseconds() - epoch_), std::max(0.0, period.seconds()));
  idle_ = player_->idle();
  bool written = true;
  const std::size_t n = joints_.size();
  for (std::size_t kind = 0; kind < kinds_.size(); ++kind) {
    const auto & values = kinds_[kind] == hardware_interface::HW_IF_POSITION ? player_->q :
      kinds_[kind] == hardware_interface::HW_IF_VELOCITY ? player_->qd : player_->qdd;
    for (std::size_t k = 0; k < n; ++k) {
      written = command_interfaces_[kind * n + k].set_value(values[k]) && written;
    }
  }
  if (!exported_.empty()) {
    static_cast<void>(exported_[0]->set_value(player_->rate()) && exported_[1]->set_value(player_->path_time()));
  }
  return written ? return_type::OK : return_type::ERROR;
}

CallbackReturn OnPathTrajectoryController::on_cleanup(const rclcpp_lifecycle::State &)
{
  report_timer_.reset();
  trajectories_.reset();
  overrides_.reset();
  player_.reset();
  library_ = RobotLibrary();
  next_ = playing_ = nullptr;
  kept_.clear();
  return CallbackReturn::SUCCESS;
}

}  // namespace rnea_controllers

PLUGINLIB_EXPORT_CLASS(
  rnea_controllers::OnPathTrajectoryController, controller_interface::ChainableControllerInterface)
