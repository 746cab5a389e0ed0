#include "rnea_controllers/robot_library.hpp"

#include <dlfcn.h>

#include <stdexcept>

namespace rnea_controllers
{
namespace
{

constexpr const char * kRemedy =
  "; make the library with: rnea export ROBOT.urdf --robot-file ROBOT.robot.yaml -o ROBOT_c --payload TOOL_LINK --shared "
  "(without --robot-file and --payload where there is none), and set the parameter to the absolute path of ROBOT_c/lib*.so";

}  // namespace

RobotLibrary::RobotLibrary(const std::string & parameter, const std::string & path)
{
  const std::string object = "parameter " + parameter + " is '" + path + "'";
  if (path.empty()) {
    throw std::runtime_error(object + ", the path of an exported robot is needed" + kRemedy);
  }
  handle_ = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle_ == nullptr) {
    const char * reason = dlerror();
    throw std::runtime_error(object + ", which cannot be loaded (" + (reason ? reason : "unknown") + ")" + kRemedy);
  }
  // A destructor does not run when its constructor throws.
  const auto refuse = [this](const std::string & message) {
      dlclose(handle_);
      throw std::runtime_error(message);
    };
  using Getter = const rnea_robot_api * (*)();
  const auto get = reinterpret_cast<Getter>(dlsym(handle_, RNEA_ROBOT_SYMBOL));
  if (get == nullptr) {
    refuse(object + ", a library without the symbol " RNEA_ROBOT_SYMBOL + kRemedy);
  }
  api_ = get();
  if (api_->abi != RNEA_ROBOT_ABI || api_->size < sizeof(rnea_robot_api)) {
    refuse(
      object + ", exported with ABI " + std::to_string(api_->abi) + " of " + std::to_string(api_->size) +
      " bytes; ABI " + std::to_string(RNEA_ROBOT_ABI) + " of at least " + std::to_string(sizeof(rnea_robot_api)) +
      " bytes is needed: export the robot again with the installed rnea_ros" + kRemedy);
  }
}

RobotLibrary::~RobotLibrary()
{
  if (handle_ != nullptr) {
    dlclose(handle_);
  }
}

}  // namespace rnea_controllers
