// Controller that plays trajectories on their path, with override, pause and stop inside update().
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "controller_interface/chainable_controller_interface.hpp"
#include "rnea_controllers/path_player.hpp"
#include "rnea_controllers/robot_library.hpp"
#include "std_msgs/msg/float64.hpp"
#include "trajectory_msgs/msg/joint_trajectory.hpp"

namespace rnea_controllers
{

/// Controller of ros2_control in the position of joint_trajectory_controller. See docs/controllers.md.
class OnPathTrajectoryController : public controller_interface::ChainableControllerInterface
{
public:
  controller_interface::CallbackReturn on_init() override;
  controller_interface::CallbackReturn on_configure(const rclcpp_lifecycle::State & previous) override;
  controller_interface::CallbackReturn on_activate(const rclcpp_lifecycle::State & previous) override;
  controller_interface::CallbackReturn on_deactivate(const rclcpp_lifecycle::State &) override
  { active_ = false; return controller_interface::CallbackReturn::SUCCESS; }
  controller_interface::CallbackReturn on_cleanup(const rclcpp_lifecycle::State & previous) override;
  controller_interface::InterfaceConfiguration command_interface_configuration() const override;
  controller_interface::InterfaceConfiguration state_interface_configuration() const override;
  controller_interface::return_type update_reference_from_subscribers(const rclcpp::Time &, const rclcpp::Duration &) override
  {
    static_cast<void>(override_ && override_->set_value(override_topic_.load()));
    return controller_interface::return_type::OK;
  }
  controller_interface::return_type update_and_write_commands(const rclcpp::Time &, const rclcpp::Duration & period) override;

protected:
  std::vector<hardware_interface::CommandInterface::SharedPtr> on_export_reference_interfaces_list() override
  { return {override_ = std::make_shared<hardware_interface::CommandInterface>(get_node()->get_name(), "override")}; }
  std::vector<hardware_interface::StateInterface::SharedPtr> on_export_state_interfaces_list() override;

private:
  void on_trajectory(const trajectory_msgs::msg::JointTrajectory & message);
  std::unique_ptr<Trajectory> read(const trajectory_msgs::msg::JointTrajectory & message) const;

  std::vector<std::string> joints_, command_joints_, kinds_;
  RobotLibrary library_;
  std::unique_ptr<PathPlayer> player_;
  std::int64_t epoch_ = 0;
  hardware_interface::CommandInterface::SharedPtr override_;
  std::vector<hardware_interface::StateInterface::SharedPtr> exported_;  // rate, path_time

  // Trajectories belong to the subscription; the control loop takes the next one and says which it plays. Older ones than that
  // are deleted, by the subscription.
  std::vector<std::unique_ptr<Trajectory>> kept_;
  std::atomic<const Trajectory *> next_{nullptr}, playing_{nullptr};
  std::atomic<bool> stop_{false}, idle_{true}, active_{false};
  std::atomic<double> override_topic_{1.0};
  std::atomic<std::uint64_t> rejected_{0};
  std::uint64_t reported_ = 0;
  rclcpp::SubscriptionBase::SharedPtr trajectories_, overrides_;
  rclcpp::TimerBase::SharedPtr report_timer_;
};

}  // namespace rnea_controllers
