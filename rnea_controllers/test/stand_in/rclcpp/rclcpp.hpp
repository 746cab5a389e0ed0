// Stand-in for what the controllers use of rclcpp and rcl_interfaces, with the signatures of the real headers.
#pragma once

#include <cstdarg>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace rcl_interfaces::msg
{
struct ParameterDescriptor
{
  std::string description, additional_constraints;
  bool read_only = false;
};
struct SetParametersResult
{
  bool successful = false;
  std::string reason;
};
}  // namespace rcl_interfaces::msg

namespace rclcpp
{
class Duration
{
public:
  explicit Duration(std::chrono::nanoseconds duration) : nanoseconds_(duration.count()) {}
  static Duration from_seconds(double seconds)
  {
    return Duration(std::chrono::nanoseconds(static_cast<std::int64_t>(seconds * 1e9)));
  }
  double seconds() const { return static_cast<double>(nanoseconds_) * 1e-9; }
  std::int64_t nanoseconds() const { return nanoseconds_; }

private:
  std::int64_t nanoseconds_;
};

class Time
{
public:
  explicit Time(std::int64_t nanoseconds = 0) : nanoseconds_(nanoseconds) {}
  Time(std::int32_t seconds, std::uint32_t nanoseconds) : nanoseconds_(seconds * 1000000000LL + nanoseconds) {}
  std::int64_t nanoseconds() const { return nanoseconds_; }
  double seconds() const { return static_cast<double>(nanoseconds_) * 1e-9; }
  Duration operator-(const Time & other) const { return Duration(std::chrono::nanoseconds(nanoseconds_ - other.nanoseconds_)); }

private:
  std::int64_t nanoseconds_;
};

class Logger
{
public:
  explicit Logger(std::shared_ptr<std::string> log) : log_(std::move(log)) {}
  __attribute__((format(printf, 3, 4))) void write(const char * severity, const char * format, ...) const
  {
    char text[2000];
    va_list arguments;
    va_start(arguments, format);
    std::vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    *log_ += std::string(severity) + ": " + text + "\n";
  }

private:
  std::shared_ptr<std::string> log_;
};

class Parameter
{
public:
  using Value = std::variant<bool, std::int64_t, double, std::string, std::vector<double>, std::vector<std::string>>;
  Parameter(std::string name, Value value) : name_(std::move(name)), value_(std::move(value)) {}
  const std::string & get_name() const { return name_; }
  const Value & value() const { return value_; }
  double as_double() const { return get<double>(); }
  bool as_bool() const { return get<bool>(); }
  std::string as_string() const { return get<std::string>(); }
  std::vector<double> as_double_array() const { return get<std::vector<double>>(); }
  std::vector<std::string> as_string_array() const { return get<std::vector<std::string>>(); }

private:
  template<class T>
  const T & get() const
  {
    if (!std::holds_alternative<T>(value_)) {
      throw std::runtime_error("parameter '" + name_ + "' has an invalid type");
    }
    return std::get<T>(value_);
  }
  std::string name_;
  Value value_;
};

class TimerBase
{
public:
  using SharedPtr = std::shared_ptr<TimerBase>;
  explicit TimerBase(std::function<void()> function) : callback(std::move(function)) {}
  std::function<void()> callback;
};

class SubscriptionBase
{
public:
  using SharedPtr = std::shared_ptr<SubscriptionBase>;
  virtual ~SubscriptionBase() = default;
};

template<class MessageT>
class Subscription : public SubscriptionBase
{
public:
  using SharedPtr = std::shared_ptr<Subscription>;
  std::function<void(std::shared_ptr<const MessageT>)> callback;
};

class QoS
{
public:
  explicit QoS(std::size_t) {}
};
class SystemDefaultsQoS : public QoS
{
public:
  SystemDefaultsQoS() : QoS(10) {}
};

namespace node_interfaces
{
struct OnSetParametersCallbackHandle
{
  using SharedPtr = std::shared_ptr<OnSetParametersCallbackHandle>;
  std::function<rcl_interfaces::msg::SetParametersResult(const std::vector<Parameter> &)> callback;
};
}  // namespace node_interfaces
}  // namespace rclcpp

#define RCLCPP_INFO(logger, ...) (logger).write("INFO", __VA_ARGS__)
#define RCLCPP_WARN(logger, ...) (logger).write("WARN", __VA_ARGS__)
#define RCLCPP_ERROR(logger, ...) (logger).write("ERROR", __VA_ARGS__)
