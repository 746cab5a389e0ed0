// Stand-in for rclcpp parameters: types, exceptions, and a table of values.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace rcl_interfaces::msg
{

struct ParameterDescriptor
{
  std::string description;
  bool read_only = false;
  bool dynamic_typing = false;
};

}  // namespace rcl_interfaces::msg

namespace rclcpp
{

// In the order of rcl_interfaces/msg/ParameterType.
enum ParameterType : std::uint8_t
{
  PARAMETER_NOT_SET, PARAMETER_BOOL, PARAMETER_INTEGER, PARAMETER_DOUBLE, PARAMETER_STRING, PARAMETER_BYTE_ARRAY,
  PARAMETER_BOOL_ARRAY, PARAMETER_INTEGER_ARRAY, PARAMETER_DOUBLE_ARRAY, PARAMETER_STRING_ARRAY
};

namespace exceptions
{

struct InvalidParameterValueException : std::runtime_error {using std::runtime_error::runtime_error;};
struct InvalidParameterTypeException : std::runtime_error {using std::runtime_error::runtime_error;};
struct ParameterAlreadyDeclaredException : std::runtime_error {using std::runtime_error::runtime_error;};
struct ParameterNotDeclaredException : std::runtime_error {using std::runtime_error::runtime_error;};
struct ParameterUninitializedException : std::runtime_error {using std::runtime_error::runtime_error;};

}  // namespace exceptions

class ParameterValue
{
public:
  using Bytes = std::vector<std::uint8_t>;
  ParameterValue() = default;
  explicit ParameterValue(bool value)
  : value_(value) {}
  explicit ParameterValue(int value)
  : value_(static_cast<std::int64_t>(value)) {}
  explicit ParameterValue(std::int64_t value)
  : value_(value) {}
  explicit ParameterValue(double value)
  : value_(value) {}
  explicit ParameterValue(const char * value)
  : value_(std::string(value)) {}
  explicit ParameterValue(const std::string & value)
  : value_(value) {}
  explicit ParameterValue(const std::vector<bool> & value)
  : value_(value) {}
  explicit ParameterValue(const std::vector<std::int64_t> & value)
  : value_(value) {}
  explicit ParameterValue(const std::vector<double> & value)
  : value_(value) {}
  explicit ParameterValue(const std::vector<std::string> & value)
  : value_(value) {}

  ParameterType get_type() const {return static_cast<ParameterType>(value_.index());}

  template<typename T>
  const T & get() const
  {
    if (const T * found = std::get_if<T>(&value_)) {
      return *found;
    }
    throw exceptions::InvalidParameterTypeException("parameter has another type");
  }

private:
  std::variant<std::monostate, bool, std::int64_t, double, std::string, Bytes, std::vector<bool>, std::vector<std::int64_t>,
    std::vector<double>, std::vector<std::string>> value_;
};

class Parameter
{
public:
  Parameter() = default;
  explicit Parameter(const std::string & name)
  : name_(name) {}
  Parameter(const std::string & name, const ParameterValue & value)
  : name_(name), value_(value) {}
  template<typename T>
  Parameter(const std::string & name, const T & value)
  : name_(name), value_(value) {}

  const std::string & get_name() const {return name_;}
  ParameterType get_type() const {return value_.get_type();}
  template<typename T>
  T get_value() const {return value_.get<T>();}
  bool as_bool() const {return value_.get<bool>();}
  std::int64_t as_int() const {return value_.get<std::int64_t>();}
  double as_double() const {return value_.get<double>();}
  std::string as_string() const {return value_.get<std::string>();}
  std::vector<double> as_double_array() const {return value_.get<std::vector<double>>();}
  std::vector<std::string> as_string_array() const {return value_.get<std::vector<std::string>>();}

private:
  std::string name_;
  ParameterValue value_;
};

// Values of a node: those of its parameter file (overrides) and those that were declared.
class ParameterTable
{
public:
  void set_override(const std::string & name, const ParameterValue & value) {overrides_[name] = value;}
  bool has(const std::string & name) const {return declared_.count(name) > 0;}

  const ParameterValue & declare(const std::string & name, const ParameterValue & value, bool dynamic_typing)
  {
    if (has(name)) {
      throw exceptions::ParameterAlreadyDeclaredException("parameter '" + name + "' has already been declared");
    }
    const auto given = overrides_.find(name);
    if (given != overrides_.end() && !dynamic_typing && given->second.get_type() != value.get_type()) {
      throw exceptions::InvalidParameterTypeException("parameter '" + name + "' has an override of another type");
    }
    return declared_[name] = given == overrides_.end() ? value : given->second;
  }

  Parameter get(const std::string & name) const
  {
    const auto found = declared_.find(name);
    if (found == declared_.end()) {
      throw exceptions::ParameterNotDeclaredException("parameter '" + name + "' is not declared");
    }
    return Parameter(name, found->second);
  }

private:
  std::map<std::string, ParameterValue> overrides_, declared_;
};

}  // namespace rclcpp
