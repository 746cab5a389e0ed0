// C functions by which a Python test drives MoveIt response adapters: a robot model, a path, parameters, a service, the result.

#include <cmath>
#include <cstring>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "class_loader/class_loader.hpp"
#include "moveit/planning_interface/planning_response_adapter.hpp"
#include "rclcpp/rclcpp.hpp"
#include "rnea_msgs/srv/retime_trajectory.hpp"

using rnea_msgs::srv::RetimeTrajectory;

namespace
{

// options: tolerance, rate, velocity_share, acceleration_share. Returns whether the service answers.
using Call = int (*)(int points, int joints, const char * names, const double * positions, const double * options);

struct Bench
{
  std::shared_ptr<moveit::core::RobotModel> model = std::make_shared<moveit::core::RobotModel>();
  std::shared_ptr<rclcpp::Node> node = std::make_shared<rclcpp::Node>("move_group");
  std::unique_ptr<planning_interface::PlanningResponseAdapter> adapter;
  planning_interface::MotionPlanResponse response;
  RetimeTrajectory::Response answer;
  std::string text;
};

std::unique_ptr<Bench> bench;

std::vector<std::string> words(const char * text)
{
  std::istringstream in(text);
  std::vector<std::string> found;
  for (std::string word; in >> word; ) {
    found.push_back(word);
  }
  return found;
}

std::string joined(const std::vector<std::string> & names)
{
  std::string text;
  for (const auto & name : names) {
    text += name + " ";
  }
  return text;
}

}  // namespace

extern "C" {

void bench_reset()
{
  rclcpp::served<RetimeTrajectory>().clear();
  rclcpp::log_lines().clear();
  rclcpp::pending_requests() = 0;
  bench = std::make_unique<Bench>();
}

void bench_joint(const char * name, int variables, int continuous)
{
  auto & model = *bench->model;
  model.joints.emplace_back(name, variables, continuous != 0);
  model.active.push_back(&model.joints.back());
}

void bench_mimic(const char * follower, const char * leader) {bench->model->mimic[follower] = leader;}

void bench_group(const char * name, const char * joints)
{
  for (const auto & wanted : words(joints)) {
    for (const auto * joint : bench->model->active) {
      if (joint->getName() == wanted) {
        bench->model->groups[name].active.push_back(joint);
      }
    }
  }
}

void bench_text(const char * name, const char * value) {bench->node->parameters.set_override(name, rclcpp::ParameterValue(value));}
void bench_number(const char * name, double value) {bench->node->parameters.set_override(name, rclcpp::ParameterValue(value));}
void bench_integer(const char * name, int value) {bench->node->parameters.set_override(name, rclcpp::ParameterValue(value));}
void bench_texts(const char * name, const char * value)
{
  bench->node->parameters.set_override(name, rclcpp::ParameterValue(words(value)));
}
// As a node does that declares its overrides by itself.
void bench_declare(const char * name)
{
  rcl_interfaces::msg::ParameterDescriptor descriptor;
  descriptor.dynamic_typing = true;
  bench->node->declare_parameter(name, rclcpp::ParameterValue(), descriptor);
}

void bench_serve(const char * name, Call call)
{
  rclcpp::served<RetimeTrajectory>()[name] = [call](RetimeTrajectory::Request::SharedPtr request) {
      std::vector<double> positions;
      for (const auto & point : request->trajectory.points) {
        positions.insert(positions.end(), point.positions.begin(), point.positions.end());
      }
      const double options[] = {request->tolerance, request->rate, request->velocity_share, request->acceleration_share};
      const auto & names = request->trajectory.joint_names;
      const bool answers = call(
        static_cast<int>(request->trajectory.points.size()), static_cast<int>(names.size()), joined(names).c_str(),
        positions.data(), options) != 0;
      return answers ? std::make_shared<RetimeTrajectory::Response>(bench->answer) : nullptr;
    };
}

void bench_answer(
  int success, const char * message, const char * model_id, const char * note, const char * names, int points, const int * seconds,
  const unsigned * nanoseconds, const double * positions, const double * velocities, const double * accelerations)
{
  auto & answer = bench->answer = RetimeTrajectory::Response();
  answer.success = success != 0;
  answer.message = message;
  answer.model_id = model_id;
  if (std::strlen(note)) {
    answer.notes.push_back(note);
  }
  answer.trajectory.joint_names = words(names);
  const auto n = answer.trajectory.joint_names.size();
  for (std::size_t k = 0; k < static_cast<std::size_t>(points); ++k) {
    const auto row = [k, n](const double * all) {return std::vector<double>(all + k * n, all + (k + 1) * n);};
    answer.trajectory.points.push_back(
      {row(positions), row(velocities), row(accelerations), {}, {seconds[k], nanoseconds[k]}});
  }
}

// Returns the text of an exception, or "".
const char * bench_initialize(const char * type, const char * parameter_namespace)
{
  bench->adapter = class_loader::create<planning_interface::PlanningResponseAdapter>(type);
  bench->text = "";
  try {
    bench->adapter ? bench->adapter->initialize(bench->node, parameter_namespace) : throw std::runtime_error("no such class");
  } catch (const std::exception & error) {
    bench->text = error.what();
  }
  return bench->text.c_str();
}

// A path of a group (without name: of the whole robot), with velocities from an earlier time law.
void bench_path(const char * group, const char * names, int points, const double * positions)
{
  auto & path = bench->response.trajectory;
  const auto joints = words(names);
  path = std::make_shared<robot_trajectory::RobotTrajectory>(
    bench->model, std::strlen(group) ? &bench->model->groups.at(group) : nullptr);
  for (int k = 0; k < points; ++k) {
    moveit::core::RobotState state(bench->model);
    state.setVariablePositions(joints, {positions + k * joints.size(), positions + (k + 1) * joints.size()});
    state.setVariableVelocities(joints, std::vector<double>(joints.size(), 7.0));
    path->addSuffixWayPoint(state, 0.5);
  }
}

int bench_adapt(double velocity_scaling, double acceleration_scaling)
{
  bench->adapter->adapt(nullptr, {velocity_scaling, acceleration_scaling}, bench->response);
  return bench->response.error_code.val;
}

const char * bench_reason()
{
  bench->text = bench->response.error_code.source + ": " + bench->response.error_code.message;
  return bench->text.c_str();
}

const char * bench_log()
{
  bench->text = "";
  for (const auto & line : rclcpp::log_lines()) {
    bench->text += line + "\n";
  }
  return bench->text.c_str();
}

int bench_pending() {return rclcpp::pending_requests();}
int bench_count() {return static_cast<int>(bench->response.trajectory->getWayPointCount());}

// out: duration from the waypoint before, position, velocity, acceleration of a joint; NaN where the state has none.
void bench_read(int waypoint, const char * joint, double * out)
{
  const auto & state = bench->response.trajectory->getWayPoint(waypoint);
  out[0] = bench->response.trajectory->getWayPointDurationFromPrevious(waypoint);
  out[1] = state.getVariablePosition(joint);
  out[2] = state.getVariableVelocity(joint);
  out[3] = state.hasAccelerations() ? state.getVariableAcceleration(joint) : NAN;
}

}
