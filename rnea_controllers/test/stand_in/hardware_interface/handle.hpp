// Stand-in for the handles of hardware_interface: doubles behind a shared mutex that is only tried, as the real ones.
#pragma once

#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <string>
#include <utility>

namespace hardware_interface
{
class Handle
{
public:
  Handle(const std::string & prefix_name, const std::string & interface_name)
  : prefix_name_(prefix_name), interface_name_(interface_name), handle_name_(prefix_name + "/" + interface_name)
  {
  }
  Handle(const Handle &) = delete;
  virtual ~Handle() = default;
  const std::string & get_name() const { return handle_name_; }
  const std::string & get_interface_name() const { return interface_name_; }
  const std::string & get_prefix_name() const { return prefix_name_; }

  template<typename T = double>
  [[nodiscard]] std::optional<T> get_optional() const
  {
    std::shared_lock<std::shared_mutex> lock(mutex, std::try_to_lock);
    return lock.owns_lock() ? std::optional<T>(value_) : std::nullopt;
  }
  template<typename T>
  [[nodiscard]] bool set_value(const T & value)
  {
    std::unique_lock<std::shared_mutex> lock(mutex, std::try_to_lock);
    value_ = lock.owns_lock() ? value : value_;
    return lock.owns_lock();
  }

  mutable std::shared_mutex mutex;

private:
  std::string prefix_name_, interface_name_, handle_name_;
  double value_ = std::numeric_limits<double>::quiet_NaN();
};

class StateInterface : public Handle
{
public:
  using SharedPtr = std::shared_ptr<StateInterface>;
  using ConstSharedPtr = std::shared_ptr<const StateInterface>;
  using Handle::Handle;
};

class CommandInterface : public Handle
{
public:
  using SharedPtr = std::shared_ptr<CommandInterface>;
  using Handle::Handle;
};

class LoanedStateInterface
{
public:
  explicit LoanedStateInterface(StateInterface::ConstSharedPtr state) : state_(*state) {}
  LoanedStateInterface(const LoanedStateInterface &) = delete;
  LoanedStateInterface(LoanedStateInterface &&) = default;
  const std::string & get_name() const { return state_.get_name(); }
  template<typename T = double>
  [[nodiscard]] std::optional<T> get_optional(unsigned int /*max_tries*/ = 10) const
  {
    return state_.get_optional<T>();
  }

private:
  const StateInterface & state_;
};

class LoanedCommandInterface
{
public:
  explicit LoanedCommandInterface(CommandInterface::SharedPtr command) : command_(*command) {}
  LoanedCommandInterface(const LoanedCommandInterface &) = delete;
  LoanedCommandInterface(LoanedCommandInterface &&) = default;
  const std::string & get_name() const { return command_.get_name(); }
  template<typename T>
  [[nodiscard]] bool set_value(const T & value, unsigned int /*max_tries*/ = 10)
  {
    return command_.set_value(value);
  }
  template<typename T = double>
  [[nodiscard]] std::optional<T> get_optional(unsigned int /*max_tries*/ = 10) const
  {
    return command_.get_optional<T>();
  }

private:
  CommandInterface & command_;
};
}  // namespace hardware_interface
