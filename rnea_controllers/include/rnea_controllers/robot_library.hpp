// Shared library of an exported robot (`rnea export --shared`), loaded at run time.
#pragma once

#include <string>
#include <utility>

#include "rnea_controllers/rnea_robot_api.h"

namespace rnea_controllers
{

/// Loaded shared library of a robot. Functions and tables of `api` are valid while the object exists.
class RobotLibrary
{
public:
  RobotLibrary() = default;
  /// Load the library. Throws std::runtime_error that names the parameter, its value and the remedy.
  RobotLibrary(const std::string & parameter, const std::string & path);
  RobotLibrary(RobotLibrary && other) noexcept { swap(other); }
  RobotLibrary & operator=(RobotLibrary && other) noexcept
  {
    RobotLibrary taken(std::move(other));
    swap(taken);
    return *this;
  }
  RobotLibrary(const RobotLibrary &) = delete;
  RobotLibrary & operator=(const RobotLibrary &) = delete;
  ~RobotLibrary();

  explicit operator bool() const { return api_ != nullptr; }
  const rnea_robot_api & api() const { return *api_; }

private:
  void swap(RobotLibrary & other) noexcept
  {
    std::swap(handle_, other.handle_);
    std::swap(api_, other.api_);
  }

  void * handle_ = nullptr;
  const rnea_robot_api * api_ = nullptr;
};

}  // namespace rnea_controllers
