// Stand-in for the interface to a node's parameters.
#pragma once

#include <memory>
#include <string>

#include "rclcpp/parameter.hpp"

namespace rclcpp::node_interfaces
{

class NodeParametersInterface
{
public:
  using SharedPtr = std::shared_ptr<NodeParametersInterface>;
  using ConstSharedPtr = std::shared_ptr<const NodeParametersInterface>;

  virtual ~NodeParametersInterface() = default;
  virtual const ParameterValue & declare_parameter(
    const std::string & name, const ParameterValue & default_value,
    const rcl_interfaces::msg::ParameterDescriptor & descriptor = rcl_interfaces::msg::ParameterDescriptor(),
    bool ignore_override = false) = 0;
  virtual bool has_parameter(const std::string & name) const = 0;
  virtual Parameter get_parameter(const std::string & name) const = 0;
  virtual bool get_parameter(const std::string & name, Parameter & parameter) const = 0;
};

// Parameters of a test.
class NodeParameters : public NodeParametersInterface
{
public:
  ParameterTable table;

  const ParameterValue & declare_parameter(
    const std::string & name, const ParameterValue & default_value,
    const rcl_interfaces::msg::ParameterDescriptor & descriptor = {}, bool = false) override
  {
    return table.declare(name, default_value, descriptor.dynamic_typing);
  }
  bool has_parameter(const std::string & name) const override {return table.has(name);}
  Parameter get_parameter(const std::string & name) const override {return table.get(name);}
  bool get_parameter(const std::string & name, Parameter & parameter) const override
  {
    if (table.has(name)) {
      parameter = table.get(name);
    }
    return table.has(name);
  }
};

}  // namespace rclcpp::node_interfaces
