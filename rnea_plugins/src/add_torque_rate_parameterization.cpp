// MoveIt response adapter: times a planned path by the service ~/retime_trajectory of query_node.
//
// The trajectory that it returns leads through the waypoints of the path, rests at both ends, and is the fastest one inside the
// limits of velocity, acceleration, jerk, torque and torque rate that query_node has. Parameters: docs/moveit.md.

#include <algorithm>
#include <chrono>
#include <cmath>
#include <exception>
#include <memory>
#include <mutex>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include <class_loader/class_loader.hpp>
#include <moveit/planning_interface/planning_response_adapter.hpp>
#include <moveit/robot_trajectory/robot_trajectory.hpp>
#include <moveit/utils/moveit_error_code.hpp>
#include <rclcpp/rclcpp.hpp>
#include <rnea_msgs/srv/retime_trajectory.hpp>

namespace rnea_plugins
{

using Code = moveit::core::MoveItErrorCode;
using rnea_msgs::srv::RetimeTrajectory;
using std::chrono::duration;
using std::chrono::steady_clock;

constexpr std::chrono::milliseconds MODEL_PERIOD{200};  // between requests to a query_node that has no model yet
constexpr double SAME_POSITION_TOL = 1e-9;  // rad, m; a path whose waypoints differ by less goes nowhere

// Failure of the adapter: error code of MoveIt and the reason.
struct Failure
{
  int code;
  std::string reason;
};

inline std::string text(double number)
{
  std::ostringstream out;
  out << number;
  return out.str();
}

class AddTorqueRateParameterization : public planning_interface::PlanningResponseAdapter
{
public:
  // Reads the parameters. Throws rclcpp::exceptions::InvalidParameterValueException, as MoveIt's adapters do.
  void initialize(const rclcpp::Node::SharedPtr & node, const std::string & parameter_namespace) override
  {
    logger_ = node->get_logger().get_child("add_torque_rate_parameterization");
    prefix_ = parameter_namespace.empty() ? "torque_rate." : parameter_namespace + ".torque_rate.";
    const auto name = prefix_ + "service";
    if (!node->has_parameter(name)) {
      node->declare_parameter<std::string>(name, "/query_node/retime_trajectory");
    }
    timeout_ = duration<double>(read_number(*node, "timeout", 30.0, 1e-3, 3600.0));
    model_timeout_ = duration<double>(read_number(*node, "model_timeout", 20.0, 0.0, 3600.0));
    rate_ = read_number(*node, "rate", 100.0, 1.0, 10000.0);
    tolerance_ = read_number(*node, "tolerance", 1e-6, 0.0, 1.0);
    // A separate executor: answers arrive no matter which executor and thread MoveIt plans in.
    group_ = node->create_callback_group(rclcpp::CallbackGroupType::MutuallyExclusive, false);
    client_ = node->create_client<RetimeTrajectory>(node->get_parameter(name).as_string(), rclcpp::ServicesQoS(), group_);
    executor_ = std::make_unique<rclcpp::executors::SingleThreadedExecutor>();
    executor_->add_callback_group(group_, node->get_node_base_interface());
  }

  std::string getDescription() const override {return "AddTorqueRateParameterization";}

  void adapt(
    const planning_scene::PlanningSceneConstPtr &, const planning_interface::MotionPlanRequest & request,
    planning_interface::MotionPlanResponse & response) const override
  {
    try {
      if (!response.trajectory || response.trajectory->empty()) {
        throw Failure{Code::INVALID_MOTION_PLAN, "the response has no path to time: list the adapter behind a planner"};
      }
      time(request, *response.trajectory);
      response.error_code = Code::SUCCESS;
    } catch (const Failure & failure) {
      fail(response, failure);
    } catch (const std::exception & error) {  // of MoveIt or rclcpp, as for a joint that the robot does not have
      fail(response, {Code::FAILURE, error.what()});
    }
  }

private:
  void time(const planning_interface::MotionPlanRequest & request, robot_trajectory::RobotTrajectory & trajectory) const
  {
    trajectory.unwind();  // continuous joints without jumps by whole turns
    auto path = std::make_shared<RetimeTrajectory::Request>();
    auto & names = path->trajectory.joint_names;  // all of the robot: query_node leaves out those that its model does not have
    for (const auto * joint : trajectory.getRobotModel()->getActiveJointModels()) {
      if (joint->getVariableCount() == 1) {
        names.push_back(joint->getName());
      }
    }
    path->tolerance = tolerance_;
    path->rate = rate_;
    // MoveIt's rule: zero is a request that does not set the factor.
    path->velocity_share = request.max_velocity_scaling_factor == 0.0 ? 1.0 : request.max_velocity_scaling_factor;
    path->acceleration_share = request.max_acceleration_scaling_factor == 0.0 ? 1.0 : request.max_acceleration_scaling_factor;
    bool moves = false;
    for (std::size_t k = 0; k < trajectory.getWayPointCount(); ++k) {
      path->trajectory.points.emplace_back();
      auto & positions = path->trajectory.points.back().positions;
      for (std::size_t j = 0; j < names.size(); ++j) {
        positions.push_back(trajectory.getWayPoint(k).getVariablePosition(names[j]));
        moves |= std::abs(positions[j] - path->trajectory.points.front().positions[j]) > SAME_POSITION_TOL;
      }
    }
    moveit::core::RobotState state(trajectory.getFirstWayPoint());  // with the joints that are not named
    state.dropDynamics();
    if (!moves) {
      state.zeroVelocities();
      state.zeroAccelerations();
      trajectory.clear().addSuffixWayPoint(state, 0.0);
      return;
    }
    const auto timed = call(path);
    for (const auto & note : timed->notes) {
      RCLCPP_INFO(logger_, "%s", note.c_str());
    }
    const auto & timed_names = timed->trajectory.joint_names;
    for (const auto * joint : moved_joints(trajectory)) {
      if (std::find(timed_names.begin(), timed_names.end(), joint->getName()) == timed_names.end()) {
        throw Failure{Code::INVALID_GROUP_NAME, "joint '" + joint->getName() + "' moves and cannot be timed: it has several "
                "variables, or is not in the model of query_node; plan for a group without it, or give both nodes one description"};
      }
    }
    trajectory.clear();
    double last = 0.0;
    for (const auto & point : timed->trajectory.points) {
      state.setVariablePositions(timed_names, point.positions);
      state.setVariableVelocities(timed_names, point.velocities);
      state.setVariableAccelerations(timed_names, point.accelerations);
      const double now = rclcpp::Duration(point.time_from_start).seconds();
      trajectory.addSuffixWayPoint(state, now - last);
      last = now;
    }
  }

  static const std::vector<const moveit::core::JointModel *> & moved_joints(const robot_trajectory::RobotTrajectory & trajectory)
  {
    const auto * group = trajectory.getGroup();
    return group ? group->getActiveJointModels() : trajectory.getRobotModel()->getActiveJointModels();
  }

  // Returns the answer of query_node, as soon as that has a model. One call at a time.
  RetimeTrajectory::Response::SharedPtr call(const RetimeTrajectory::Request::SharedPtr & request) const
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto end = steady_clock::now() + model_timeout_;
    auto response = ask(request);
    const bool waits = !response->success && response->model_id.empty() && model_timeout_ > MODEL_PERIOD;
    if (waits) {
      RCLCPP_INFO(
        logger_, "%s: %s; asking again for up to %s s", service().c_str(), response->message.c_str(),
        text(model_timeout_.count()).c_str());
    }
    while (!response->success && response->model_id.empty() && steady_clock::now() + MODEL_PERIOD < end) {
      std::this_thread::sleep_for(MODEL_PERIOD);
      response = ask(request);
    }
    if (!response->success) {
      const bool waited = waits && response->model_id.empty();
      throw Failure{Code::FAILURE, service() + ": " + response->message + (waited ? "; still so after " +
              text(model_timeout_.count()) + " s: set " + prefix_ + "model_timeout higher, or start query_node earlier" : "")};
    }
    return response;
  }

  // Returns one answer.
  RetimeTrajectory::Response::SharedPtr ask(const RetimeTrajectory::Request::SharedPtr & request) const
  {
    const auto end = steady_clock::now() + timeout_;
    const auto seconds = text(timeout_.count()) + " s";
    if (!client_->wait_for_service(timeout_)) {
      throw Failure{Code::COMMUNICATION_FAILURE, service() + " is not available after " + seconds + ": start query_node (ros2 launch "
              "rnea_ros dynamics.launch.py query_node:=true), or set " + prefix_ + "service"};
    }
    auto answer = client_->async_send_request(request);
    const auto left = std::max(duration<double>(end - steady_clock::now()), duration<double>(0.0));
    switch (executor_->spin_until_future_complete(answer, left)) {
      case rclcpp::FutureReturnCode::SUCCESS:
        break;
      case rclcpp::FutureReturnCode::TIMEOUT:
        client_->remove_pending_request(answer);
        throw Failure{Code::TIMED_OUT, service() + " has not answered after " + seconds + ": set " + prefix_ + "timeout higher, or "
                "send fewer waypoints; its first answer takes longer, since it compiles"};
      default:
        client_->remove_pending_request(answer);
        throw Failure{Code::COMMUNICATION_FAILURE, "shut down while waiting for " + service()};
    }
    return answer.get();
  }

  void fail(planning_interface::MotionPlanResponse & response, const Failure & failure) const
  {
    RCLCPP_ERROR(logger_, "Path not timed: %s", failure.reason.c_str());
    response.error_code = Code(failure.code, failure.reason, getDescription());
  }

  std::string service() const {return std::string("service '") + client_->get_service_name() + "'";}

  // Returns a number, which may be given as an integer, in a range.
  double read_number(rclcpp::Node & node, const std::string & name, double value, double low, double high) const
  {
    rcl_interfaces::msg::ParameterDescriptor descriptor;
    descriptor.dynamic_typing = true;
    if (!node.has_parameter(prefix_ + name)) {
      node.declare_parameter(prefix_ + name, rclcpp::ParameterValue(value), descriptor);
    }
    const auto given = node.get_parameter(prefix_ + name);
    const bool is_integer = given.get_type() == rclcpp::ParameterType::PARAMETER_INTEGER;
    const double found = is_integer ? static_cast<double>(given.as_int()) : given.as_double();
    if (!(found >= low && found <= high)) {
      throw rclcpp::exceptions::InvalidParameterValueException(
              prefix_ + name + " is " + text(found) + "; " + text(low) + " to " + text(high) + " is allowed");
    }
    return found;
  }

  rclcpp::Logger logger_{rclcpp::get_logger("add_torque_rate_parameterization")};
  std::string prefix_;
  duration<double> timeout_{30.0}, model_timeout_{20.0};
  double rate_{100.0}, tolerance_{1e-6};
  rclcpp::CallbackGroup::SharedPtr group_;
  rclcpp::Client<RetimeTrajectory>::SharedPtr client_;
  std::unique_ptr<rclcpp::executors::SingleThreadedExecutor> executor_;
  mutable std::mutex mutex_;
};

}  // namespace rnea_plugins

CLASS_LOADER_REGISTER_CLASS(rnea_plugins::AddTorqueRateParameterization, planning_interface::PlanningResponseAdapter)
