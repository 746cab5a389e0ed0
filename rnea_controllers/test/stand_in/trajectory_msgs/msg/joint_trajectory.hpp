// Stand-in for trajectory_msgs/JointTrajectory and what is in it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace trajectory_msgs::msg
{
struct TimeStandIn
{
  std::int32_t sec = 0;
  std::uint32_t nanosec = 0;
};
struct HeaderStandIn
{
  TimeStandIn stamp;
};
struct JointTrajectoryPoint
{
  std::vector<double> positions, velocities, accelerations, effort;
  TimeStandIn time_from_start;
};
struct JointTrajectory
{
  HeaderStandIn header;
  std::vector<std::string> joint_names;
  std::vector<JointTrajectoryPoint> points;
};
}  // namespace trajectory_msgs::msg
