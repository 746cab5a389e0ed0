// Stand-in for MoveIt's error codes; values of moveit_msgs/msg/MoveItErrorCodes.
#pragma once

#include <cstdint>
#include <string>

namespace moveit::core
{

class MoveItErrorCode
{
public:
  enum : std::int32_t
  {
    UNDEFINED = 0, SUCCESS = 1, INVALID_MOTION_PLAN = -2, TIMED_OUT = -6, INVALID_GROUP_NAME = -15,
    COMMUNICATION_FAILURE = -25, FAILURE = 99999
  };
  std::int32_t val;
  std::string message, source;

  MoveItErrorCode(const int code = UNDEFINED, const std::string & error_message = "", const std::string & error_source = "")
  : val(code), message(error_message), source(error_source) {}
  explicit operator bool() const {return val == SUCCESS;}
};

}  // namespace moveit::core
