// Stand-in for controller_interface: base classes of controllers, with the order of calls of the real ones.
#pragma once

#include <cstdint>

#include "hardware_interface/handle.hpp"
#include "rclcpp_lifecycle/lifecycle_node.hpp"

namespace controller_interface
{
using CallbackReturn = rclcpp_lifecycle::node_interfaces::LifecycleNodeInterface::CallbackReturn;
enum class return_type : std::uint8_t { OK = 0, ERROR = 1 };
enum class interface_configuration_type : std::uint8_t { ALL = 0, INDIVIDUAL = 1, NONE = 2, INDIVIDUAL_BEST_EFFORT = 3, REGEX = 10 };
struct InterfaceConfiguration
{
  interface_configuration_type type = interface_configuration_type::NONE;
  std::vector<std::string> names = {};
};

class ControllerInterfaceBase : public rclcpp_lifecycle::node_interfaces::LifecycleNodeInterface
{
public:
  virtual InterfaceConfiguration command_interface_configuration() const = 0;
  virtual InterfaceConfiguration state_interface_configuration() const = 0;
  virtual CallbackReturn on_init() = 0;
  virtual return_type update(const rclcpp::Time & time, const rclcpp::Duration & period) = 0;
  std::shared_ptr<rclcpp_lifecycle::LifecycleNode> get_node() { return node_; }
  std::shared_ptr<const rclcpp_lifecycle::LifecycleNode> get_node() const { return node_; }
  unsigned int get_update_rate() const { return update_rate_; }

  // Of the stand-in alone: what the controller manager does.
  void stand_in_init(const std::string & name, unsigned int update_rate)
  {
    node_ = std::make_shared<rclcpp_lifecycle::LifecycleNode>(name);
    update_rate_ = update_rate;
  }
  void assign_interfaces(
    std::vector<hardware_interface::LoanedCommandInterface> && command_interfaces,
    std::vector<hardware_interface::LoanedStateInterface> && state_interfaces)
  {
    command_interfaces_ = std::move(command_interfaces);
    state_interfaces_ = std::move(state_interfaces);
  }
  virtual std::vector<hardware_interface::CommandInterface::SharedPtr> export_reference_interfaces() { return {}; }
  virtual std::vector<hardware_interface::StateInterface::SharedPtr> stand_in_export_state_interfaces() { return {}; }
  virtual bool set_chained_mode(bool) { return false; }

protected:
  std::vector<hardware_interface::LoanedCommandInterface> command_interfaces_;
  std::vector<hardware_interface::LoanedStateInterface> state_interfaces_;

private:
  std::shared_ptr<rclcpp_lifecycle::LifecycleNode> node_;
  unsigned int update_rate_ = 0;
};

class ControllerInterface : public ControllerInterfaceBase
{
};

class ChainableControllerInterface : public ControllerInterfaceBase
{
public:
  return_type update(const rclcpp::Time & time, const rclcpp::Duration & period) final
  {
    const auto found = in_chained_mode_ ? return_type::OK : update_reference_from_subscribers(time, period);
    return found == return_type::OK ? update_and_write_commands(time, period) : found;
  }
  std::vector<hardware_interface::CommandInterface::SharedPtr> export_reference_interfaces() final
  {
    return on_export_reference_interfaces_list();
  }
  std::vector<hardware_interface::StateInterface::SharedPtr> stand_in_export_state_interfaces() final
  {
    return on_export_state_interfaces_list();
  }
  bool set_chained_mode(bool chained_mode) final
  {
    in_chained_mode_ = on_set_chained_mode(chained_mode) ? chained_mode : in_chained_mode_;
    return in_chained_mode_ == chained_mode;
  }
  bool is_in_chained_mode() const { return in_chained_mode_; }

protected:
  virtual std::vector<hardware_interface::StateInterface::SharedPtr> on_export_state_interfaces_list() { return {}; }
  virtual std::vector<hardware_interface::CommandInterface::SharedPtr> on_export_reference_interfaces_list() { return {}; }
  virtual bool on_set_chained_mode(bool) { return true; }
  virtual return_type update_reference_from_subscribers(const rclcpp::Time & time, const rclcpp::Duration & period) = 0;
  virtual return_type update_and_write_commands(const rclcpp::Time & time, const rclcpp::Duration & period) = 0;

private:
  bool in_chained_mode_ = false;
};
}  // namespace controller_interface
