// Stand-in for MoveIt's robot model, robot state and trajectory: joints by name, mimic joints, groups.
#pragma once

#include <cmath>
#include <deque>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace moveit::core
{

class JointModel
{
public:
  JointModel(const std::string & name, std::size_t variables, bool continuous)
  : continuous(continuous), name_(name), variables_(variables) {}
  const std::string & getName() const {return name_;}
  std::size_t getVariableCount() const {return variables_;}
  bool continuous;

private:
  std::string name_;
  std::size_t variables_;
};

class JointModelGroup
{
public:
  std::vector<const JointModel *> active;
  const std::vector<const JointModel *> & getActiveJointModels() const {return active;}
};

class RobotModel
{
public:
  std::deque<JointModel> joints;  // those that are neither fixed nor mimic
  std::vector<const JointModel *> active;
  std::map<std::string, std::string> mimic;  // name of a mimic joint -> name of the joint that it follows, one to one
  std::map<std::string, JointModelGroup> groups;

  const std::vector<const JointModel *> & getActiveJointModels() const {return active;}
};

using RobotModelConstPtr = std::shared_ptr<const RobotModel>;

class RobotState
{
public:
  explicit RobotState(const RobotModelConstPtr & model)
  : model_(model)
  {
    for (const auto & joint : model->joints) {
      positions_[joint.getName()] = 0.0;
    }
    for (const auto & [follower, leader] : model->mimic) {
      positions_[follower] = positions_[leader];
    }
  }
  double getVariablePosition(const std::string & name) const {return at(positions_, name);}
  double getVariableVelocity(const std::string & name) const {return at(velocities_, name);}
  double getVariableAcceleration(const std::string & name) const {return at(accelerations_, name);}
  bool hasVelocities() const {return !velocities_.empty();}
  bool hasAccelerations() const {return !accelerations_.empty();}
  void setVariablePosition(const std::string & name, double value) {setVariablePositions({name}, {value});}
  void setVariablePositions(const std::vector<std::string> & names, const std::vector<double> & values)
  {
    set(positions_, names, values);
    for (const auto & [follower, leader] : model_->mimic) {
      positions_[follower] = positions_[leader];
    }
  }
  void setVariableVelocities(const std::vector<std::string> & names, const std::vector<double> & values)
  {
    if (!hasVelocities()) {zeroVelocities();}
    set(velocities_, names, values);
  }
  void setVariableAccelerations(const std::vector<std::string> & names, const std::vector<double> & values)
  {
    if (!hasAccelerations()) {zeroAccelerations();}
    set(accelerations_, names, values);
  }
  void zeroVelocities() {zero(velocities_);}
  void zeroAccelerations() {zero(accelerations_);}
  void dropDynamics() {velocities_.clear(); accelerations_.clear();}

private:
  using Values = std::map<std::string, double>;
  static double at(const Values & values, const std::string & name)
  {
    if (values.count(name) == 0) {throw std::runtime_error("Variable '" + name + "' is not known to the model");}
    return values.at(name);
  }
  void set(Values & values, const std::vector<std::string> & names, const std::vector<double> & numbers) const
  {
    if (names.size() != numbers.size()) {throw std::runtime_error("as many values as names are needed");}
    for (std::size_t k = 0; k < names.size(); ++k) {at(positions_, names[k]); values[names[k]] = numbers[k];}
  }
  void zero(Values & values) const
  {
    for (const auto & [name, position] : positions_) {static_cast<void>(position); values[name] = 0.0;}
  }

  RobotModelConstPtr model_;
  Values positions_, velocities_, accelerations_;
};

}  // namespace moveit::core

namespace robot_trajectory
{

class RobotTrajectory
{
public:
  RobotTrajectory(const moveit::core::RobotModelConstPtr & model, const moveit::core::JointModelGroup * group)
  : model_(model), group_(group) {}

  const moveit::core::RobotModelConstPtr & getRobotModel() const {return model_;}
  const moveit::core::JointModelGroup * getGroup() const {return group_;}
  std::size_t getWayPointCount() const {return states_.size();}
  bool empty() const {return states_.empty();}
  const moveit::core::RobotState & getWayPoint(std::size_t index) const {return states_.at(index);}
  const moveit::core::RobotState & getFirstWayPoint() const {return states_.front();}
  double getWayPointDurationFromPrevious(std::size_t index) const {return durations_.at(index);}
  RobotTrajectory & clear() {states_.clear(); durations_.clear(); return *this;}
  RobotTrajectory & addSuffixWayPoint(const moveit::core::RobotState & state, double dt)
  {
    states_.push_back(state);
    durations_.push_back(dt);
    return *this;
  }
  // Continuous joints go on from the last waypoint without jumps of whole turns.
  RobotTrajectory & unwind()
  {
    for (const auto * joint : model_->active) {
      for (std::size_t k = 1; joint->continuous && k < states_.size(); ++k) {
        const double last = states_[k - 1].getVariablePosition(joint->getName());
        const double now = states_[k].getVariablePosition(joint->getName());
        states_[k].setVariablePosition(joint->getName(), last + std::remainder(now - last, 2.0 * M_PI));
      }
    }
    return *this;
  }

private:
  moveit::core::RobotModelConstPtr model_;
  const moveit::core::JointModelGroup * group_;
  std::deque<moveit::core::RobotState> states_;
  std::deque<double> durations_;
};

using RobotTrajectoryPtr = std::shared_ptr<RobotTrajectory>;

}  // namespace robot_trajectory
