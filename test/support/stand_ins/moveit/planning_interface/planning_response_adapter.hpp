// Stand-in for the base class of MoveIt's response adapters, with request and response.
#pragma once

#include <memory>
#include <string>

#include "moveit/robot_trajectory/robot_trajectory.hpp"
#include "moveit/utils/moveit_error_code.hpp"
#include "rclcpp/rclcpp.hpp"

namespace planning_scene
{

class PlanningScene {};
using PlanningSceneConstPtr = std::shared_ptr<const PlanningScene>;

}  // namespace planning_scene

namespace planning_interface
{

struct MotionPlanRequest
{
  double max_velocity_scaling_factor = 0.0, max_acceleration_scaling_factor = 0.0;
};

struct MotionPlanResponse
{
  robot_trajectory::RobotTrajectoryPtr trajectory;
  moveit::core::MoveItErrorCode error_code = moveit::core::MoveItErrorCode::FAILURE;
};

class PlanningResponseAdapter
{
public:
  virtual ~PlanningResponseAdapter() = default;
  virtual void initialize(const rclcpp::Node::SharedPtr &, const std::string &) {}
  [[nodiscard]] virtual std::string getDescription() const = 0;
  virtual void adapt(
    const planning_scene::PlanningSceneConstPtr & planning_scene, const MotionPlanRequest & req, MotionPlanResponse & res)
  const = 0;
};

}  // namespace planning_interface
