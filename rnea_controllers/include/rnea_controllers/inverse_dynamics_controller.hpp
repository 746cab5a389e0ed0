// Chainable controller that commands joint efforts from the exact dynamics of an exported robot.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "controller_interface/chainable_controller_interface.hpp"
#include "realtime_tools/realtime_thread_safe_box.hpp"
#include "rnea_controllers/robot_library.hpp"
#include "rnea_controllers/torque_law.hpp"

namespace rnea_controllers
{

/// Chainable controller of ros2_control: references `<joint>/position`, `velocity`, `acceleration`; commands `<joint>/effort`;
/// exported states `<joint>/effort_rate` and `<joint>/utilization`. See docs/controllers.md.
class InverseDynamicsController : public controller_interface::ChainableControllerInterface
{
public:
  controller_interface::CallbackReturn on_init() override;
  controller_interface::CallbackReturn on_configure(const rclcpp_lifecycle::State & previous) override;
  controller_interface::CallbackReturn on_activate(const rclcpp_lifecycle::State & previous) override;
  controller_interface::CallbackReturn on_deactivate(const rclcpp_lifecycle::State & previous) override;
  controller_interface::CallbackReturn on_cleanup(const rclcpp_lifecycle::State &) override { return release(); }
  controller_interface::CallbackReturn on_error(const rclcpp_lifecycle::State &) override { return release(); }

  controller_interface::InterfaceConfiguration command_interface_configuration() const override;
  controller_interface::InterfaceConfiguration state_interface_configuration() const override;

  // Nothing precedes: references stay those of the activation, the pose is held.
  controller_interface::return_type update_reference_from_subscribers(const rclcpp::Time &, const rclcpp::Duration &) override
  { return controller_interface::return_type::OK; }
  controller_interface::return_type update_and_write_commands(const rclcpp::Time &, const rclcpp::Duration & period) override;

protected:
  std::vector<hardware_interface::CommandInterface::SharedPtr> on_export_reference_interfaces_list() override;
  std::vector<hardware_interface::StateInterface::SharedPtr> on_export_state_interfaces_list() override;

private:
  TorqueLawOptions read_options(const rnea_robot_api & robot);
  std::vector<double> read_array(const std::string & name, double default_value);
  std::vector<double> read_limit(const std::string & name, const double * of_the_robot);
  rcl_interfaces::msg::SetParametersResult on_parameters(const std::vector<rclcpp::Parameter> & changed);
  Payload read_payload(const std::vector<rclcpp::Parameter> & changed) const;
  controller_interface::CallbackReturn release();
  void report();

  bool read_states() noexcept;
  void estimate_states(double dt) noexcept;
  void read_references() noexcept;
  bool write_commands() noexcept;
  // Only the control loop writes: an addition needs no locked instruction.
  void count(std::size_t k, bool more) noexcept
  { cycles_[k].store(cycles_[k].load(std::memory_order_relaxed) + more, std::memory_order_relaxed); }

  std::set<std::string> fixed_parameters_;  // what configure() reads
  std::vector<std::string> joints_;
  RobotLibrary library_;
  std::unique_ptr<TorqueLaw> law_;
  std::vector<hardware_interface::CommandInterface::SharedPtr> references_;   // of each joint position, velocity, acceleration
  std::vector<hardware_interface::StateInterface::SharedPtr> exported_;       // of each joint effort_rate, utilization
  std::vector<double> q_read_, qd_read_, q_before_, qd_before_;  // readings of this cycle, and the last finite ones
  std::vector<double> q_, qd_, slope_;                           // state; velocity by differences of positions
  double q_stale_time_ = 0.0, qd_stale_time_ = 0.0, stale_timeout_ = 0.0, missing_time_ = 0.0, state_timeout_ = 0.0;
  double cycle_ = 0.0;
  unsigned missed_cycles_ = 0;
  bool holds_ = false;
  std::vector<double> effort_last_;  // before the deactivation
  std::int64_t deactivated_ = 0;     // ns

  realtime_tools::RealtimeThreadSafeBox<Payload> payload_box_;
  std::atomic<bool> payload_changed_{false};
  rclcpp::node_interfaces::OnSetParametersCallbackHandle::SharedPtr parameter_callback_;

  // Written by the control loop, reported once a second.
  std::array<std::atomic<std::uint64_t>, 5> cycles_{};
  std::array<std::uint64_t, 5> reported_{};
  rclcpp::TimerBase::SharedPtr report_timer_;
};

}  // namespace rnea_controllers
