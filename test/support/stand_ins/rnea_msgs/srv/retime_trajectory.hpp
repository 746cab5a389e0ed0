// Stand-in for the generated C++ of rnea_msgs/srv/RetimeTrajectory, without fields that no test reads.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "rclcpp/rclcpp.hpp"

namespace trajectory_msgs::msg
{

struct JointTrajectoryPoint
{
  std::vector<double> positions, velocities, accelerations, effort;
  builtin_interfaces::msg::Duration time_from_start;
};

struct JointTrajectory
{
  std::vector<std::string> joint_names;
  std::vector<JointTrajectoryPoint> points;
};

}  // namespace trajectory_msgs::msg

namespace rnea_msgs::srv
{

struct RetimeTrajectory
{
  struct Request
  {
    using SharedPtr = std::shared_ptr<Request>;
    trajectory_msgs::msg::JointTrajectory trajectory;
    double tolerance = 1e-6, rate = 100.0, velocity_share = 1.0, acceleration_share = 1.0;
  };
  struct Response
  {
    using SharedPtr = std::shared_ptr<Response>;
    bool success = false;
    std::string message, model_id;
    double duration = 0.0;
    trajectory_msgs::msg::JointTrajectory trajectory;
    std::vector<std::string> notes;
  };
};

}  // namespace rnea_msgs::srv
