// Stand-in for rclcpp_lifecycle::LifecycleNode: parameters, a log, timers and subscriptions that a test calls itself.
#pragma once

#include <atomic>
#include <map>

#include "rclcpp/rclcpp.hpp"

namespace rclcpp_lifecycle
{
class State
{
};

class LifecycleNode
{
public:
  explicit LifecycleNode(std::string name) : name_(std::move(name)) {}
  const char * get_name() const { return name_.c_str(); }
  rclcpp::Logger get_logger() const { return rclcpp::Logger(log); }
  rclcpp::Time now() const { return rclcpp::Time(clock); }

  bool has_parameter(const std::string & name) const { return declared_.count(name) > 0; }

  template<typename ParameterT>
  auto declare_parameter(
    const std::string & name, const ParameterT & default_value,
    const rcl_interfaces::msg::ParameterDescriptor & descriptor = rcl_interfaces::msg::ParameterDescriptor(),
    bool ignore_override = false)
  {
    const auto given = overrides.find(name);
    rclcpp::Parameter parameter(name, default_value);
    if (given != overrides.end() && !ignore_override) {
      if (!std::holds_alternative<ParameterT>(given->second.value())) {
        throw std::runtime_error("parameter '" + name + "' has invalid type");
      }
      parameter = given->second;
    }
    descriptions.insert_or_assign(name, descriptor.description);
    declared_.insert_or_assign(name, parameter);
    return std::get<ParameterT>(parameter.value());
  }

  rclcpp::Parameter get_parameter(const std::string & name) const
  {
    const auto found = declared_.find(name);
    if (found == declared_.end()) {
      throw std::runtime_error("parameter '" + name + "' is not declared");
    }
    return found->second;
  }

  rclcpp::node_interfaces::OnSetParametersCallbackHandle::SharedPtr add_on_set_parameters_callback(
    std::function<rcl_interfaces::msg::SetParametersResult(const std::vector<rclcpp::Parameter> &)> callback)
  {
    const auto handle = std::make_shared<rclcpp::node_interfaces::OnSetParametersCallbackHandle>();
    handle->callback = std::move(callback);
    callbacks_ = handle;
    return handle;
  }

  rcl_interfaces::msg::SetParametersResult set_parameters_atomically(const std::vector<rclcpp::Parameter> & parameters)
  {
    rcl_interfaces::msg::SetParametersResult result;
    result.successful = true;
    if (const auto handle = callbacks_.lock()) {
      result = handle->callback(parameters);
    }
    for (const auto & parameter : parameters) {
      if (result.successful) {
        declared_.insert_or_assign(parameter.get_name(), parameter);
      }
    }
    return result;
  }

  template<typename DurationT>
  rclcpp::TimerBase::SharedPtr create_wall_timer(DurationT, std::function<void()> callback)
  {
    const auto timer = std::make_shared<rclcpp::TimerBase>(std::move(callback));
    timers.push_back(timer);
    return timer;
  }

  template<typename MessageT, typename CallbackT>
  typename rclcpp::Subscription<MessageT>::SharedPtr create_subscription(
    const std::string & topic, const rclcpp::QoS &, CallbackT && callback)
  {
    const auto subscription = std::make_shared<rclcpp::Subscription<MessageT>>();
    subscription->callback = std::forward<CallbackT>(callback);
    subscriptions[topic] = subscription;
    return subscription;
  }

  // Of the stand-in alone.
  std::map<std::string, rclcpp::Parameter> overrides;
  std::map<std::string, std::string> descriptions;
  std::map<std::string, std::weak_ptr<rclcpp::SubscriptionBase>> subscriptions;
  std::vector<std::weak_ptr<rclcpp::TimerBase>> timers;
  std::shared_ptr<std::string> log = std::make_shared<std::string>();
  std::atomic<std::int64_t> clock{0};  // of one thread, read by others

private:
  std::string name_;
  std::map<std::string, rclcpp::Parameter> declared_;
  std::weak_ptr<rclcpp::node_interfaces::OnSetParametersCallbackHandle> callbacks_;
};

namespace node_interfaces
{
class LifecycleNodeInterface
{
public:
  enum class CallbackReturn : std::uint8_t { SUCCESS = 97, FAILURE = 98, ERROR = 99 };
  virtual ~LifecycleNodeInterface() = default;
  virtual CallbackReturn on_configure(const State &) { return CallbackReturn::SUCCESS; }
  virtual CallbackReturn on_cleanup(const State &) { return CallbackReturn::SUCCESS; }
  virtual CallbackReturn on_activate(const State &) { return CallbackReturn::SUCCESS; }
  virtual CallbackReturn on_deactivate(const State &) { return CallbackReturn::SUCCESS; }
  virtual CallbackReturn on_error(const State &) { return CallbackReturn::SUCCESS; }
};
}  // namespace node_interfaces
}  // namespace rclcpp_lifecycle
