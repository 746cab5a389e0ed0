// Stand-in for rclcpp: a node with parameters and service clients, an executor that waits for an answer.
//
// A service is a function that a test registers in rclcpp::served<Service>(); one that returns nothing does not answer in time.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "rclcpp/logging.hpp"
#include "rclcpp/node_interfaces/node_parameters_interface.hpp"
#include "rclcpp/parameter.hpp"

namespace builtin_interfaces::msg
{

struct Duration
{
  std::int32_t sec = 0;
  std::uint32_t nanosec = 0;
};

}  // namespace builtin_interfaces::msg

namespace rclcpp
{

class Duration
{
public:
  Duration(const builtin_interfaces::msg::Duration & message)  // NOLINT: implicit in rclcpp too
  : nanoseconds_(message.sec * INT64_C(1000000000) + message.nanosec) {}
  double seconds() const {return 1e-9 * static_cast<double>(nanoseconds_);}

private:
  std::int64_t nanoseconds_;
};

class QoS {};
class ServicesQoS : public QoS {};
enum class CallbackGroupType {MutuallyExclusive, Reentrant};
enum class FutureReturnCode {SUCCESS, INTERRUPTED, TIMEOUT};

class CallbackGroup
{
public:
  using SharedPtr = std::shared_ptr<CallbackGroup>;
  bool automatically_added = true;
  bool in_executor = false;
};

namespace node_interfaces
{

class NodeBaseInterface
{
public:
  using SharedPtr = std::shared_ptr<NodeBaseInterface>;
};

}  // namespace node_interfaces

template<typename Service>
using Served = std::function<typename Service::Response::SharedPtr(typename Service::Request::SharedPtr)>;

// Services by name.
template<typename Service>
std::map<std::string, Served<Service>> & served()
{
  static std::map<std::string, Served<Service>> services;
  return services;
}

// Number of requests, of all clients, that were neither answered nor removed.
inline int & pending_requests()
{
  static int count = 0;
  return count;
}

template<typename Service>
class Client
{
public:
  using SharedPtr = std::shared_ptr<Client>;
  using SharedRequest = typename Service::Request::SharedPtr;
  using SharedResponse = typename Service::Response::SharedPtr;

  struct FutureAndRequestId
  {
    std::future<SharedResponse> future;
    std::int64_t request_id;

    SharedResponse get() {return future.get();}
    template<class Rep, class Period>
    std::future_status wait_for(const std::chrono::duration<Rep, Period> & timeout) const {return future.wait_for(timeout);}
  };

  Client(const std::string & name, const CallbackGroup::SharedPtr & group)
  : name_(name), group_(group) {}

  const char * get_service_name() const {return name_.c_str();}

  template<typename Rep, typename Ratio>
  bool wait_for_service(std::chrono::duration<Rep, Ratio>) {return served<Service>().count(name_) > 0;}

  FutureAndRequestId async_send_request(SharedRequest request)
  {
    auto & promise = pending_[++last_id_];
    FutureAndRequestId sent{promise.get_future(), last_id_};
    // An answer arrives only where an executor takes the callbacks of the client's group.
    if (auto answer = group_->in_executor ? served<Service>().at(name_)(request) : nullptr) {
      promise.set_value(answer);
      pending_.erase(last_id_);
    } else {
      ++pending_requests();
    }
    return sent;
  }

  bool remove_pending_request(const FutureAndRequestId & sent)
  {
    const auto removed = pending_.erase(sent.request_id);
    pending_requests() -= static_cast<int>(removed);
    return removed > 0;
  }

private:
  std::string name_;
  CallbackGroup::SharedPtr group_;
  std::map<std::int64_t, std::promise<SharedResponse>> pending_;
  std::int64_t last_id_ = 0;
};

class Node
{
public:
  using SharedPtr = std::shared_ptr<Node>;

  explicit Node(const std::string & name)
  : name_(name) {}
  Logger get_logger() const {return Logger(name_);}

  ParameterTable parameters;  // overrides are set by tests

  const ParameterValue & declare_parameter(
    const std::string & name, const ParameterValue & value,
    const rcl_interfaces::msg::ParameterDescriptor & descriptor = rcl_interfaces::msg::ParameterDescriptor())
  {
    return parameters.declare(name, value, descriptor.dynamic_typing);
  }
  template<typename T>
  T declare_parameter(const std::string & name, const T & value)
  {
    return parameters.declare(name, ParameterValue(value), false).template get<T>();
  }
  bool has_parameter(const std::string & name) const {return parameters.has(name);}
  Parameter get_parameter(const std::string & name) const {return parameters.get(name);}

  CallbackGroup::SharedPtr create_callback_group(CallbackGroupType, bool automatically_add_to_executor_with_node = true)
  {
    auto group = std::make_shared<CallbackGroup>();
    group->automatically_added = automatically_add_to_executor_with_node;
    return group;
  }
  template<typename Service>
  typename Client<Service>::SharedPtr create_client(const std::string & name, const QoS &, CallbackGroup::SharedPtr group)
  {
    return std::make_shared<Client<Service>>(name, group);
  }
  node_interfaces::NodeBaseInterface::SharedPtr get_node_base_interface()
  {
    return std::make_shared<node_interfaces::NodeBaseInterface>();
  }

private:
  std::string name_;
};

namespace executors
{

class SingleThreadedExecutor
{
public:
  void add_callback_group(CallbackGroup::SharedPtr group, node_interfaces::NodeBaseInterface::SharedPtr)
  {
    if (group->automatically_added) {
      throw std::runtime_error("the callback group is in the executor of the node");
    }
    group->in_executor = true;
  }
  template<typename Future, typename Rep, typename Ratio>
  FutureReturnCode spin_until_future_complete(const Future & future, std::chrono::duration<Rep, Ratio>)
  {
    return future.wait_for(std::chrono::seconds(0)) == std::future_status::ready ? FutureReturnCode::SUCCESS :
           FutureReturnCode::TIMEOUT;
  }
};

}  // namespace executors

}  // namespace rclcpp
