// Stand-in for the exceptions of inverse_dynamics_solver.
#pragma once

#include <stdexcept>

#include "rclcpp/parameter.hpp"

namespace inverse_dynamics_solver
{

using InvalidParameterValueException = rclcpp::exceptions::InvalidParameterValueException;

struct UninitializedException : std::runtime_error
{
  UninitializedException()
  : std::runtime_error("Solver is not initialized") {}
};

}  // namespace inverse_dynamics_solver
