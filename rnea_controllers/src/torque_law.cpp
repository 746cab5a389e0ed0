#include "rnea_controllers/torque_law.hpp"

#include <algorithm>
#include <cmath>
#include <random>
#include <utility>

namespace rnea_controllers
{
namespace
{

constexpr int kPoses = 100;               // from which the largest inertias are taken
constexpr double kFeedbackShare = 0.5;    // of the torque that position and velocity error may take each
constexpr double kMotionShare = 0.25;     // of the torque that the motion back to a reference may take, and
constexpr double kAcceleration = 10.0;    // its acceleration at most, rad/s^2, m/s^2
constexpr double kOverspeed = 1.5;        // of the velocity limit, above which joints are only braked
constexpr double kCatchUpVelocity = 1.0;  // rad/s, m/s: default of catch_up_velocity, at most
constexpr double kStepTime = 0.02;        // s: a step of the reference that the joint could not do in that time is a jump
constexpr int kClosingSteps = 3;  // of Newton's method, from the pose of the last cycle: two reach rounding

/// Return 3 x^2 - 2 x^3 within 0 to 1: a share without a jump of its rate.
double smooth_step(double x) noexcept
{
  x = std::min(1.0, std::max(0.0, x));
  return x * x * (3.0 - 2.0 * x);
}

double clamp(double x, double center, double radius) noexcept
{
  return std::min(center + radius, std::max(center - radius, x));
}

}  // namespace

TorqueLaw::TorqueLaw(const rnea_robot_api & robot, TorqueLawOptions options)
: robot_(robot), options_(std::move(options)), n_(static_cast<std::size_t>(robot.n)), reference_(robot)
{
  for (auto * array : {&q, &qd, &q_ref, &qd_ref, &qdd_ref, &effort, &tau, &tau_rate, &utilization,
      &acceleration_, &jerk_, &qdd_before_, &zeros_, &feedback_, &feedback_rate_, &friction_,
      &friction_rate_, &added_, &offset_, &effort_before_, &tau_before_, &brake_})
  {
    array->assign(n_, 0.0);
  }
  pose_.assign(robot.start_pose, robot.start_pose + robot.n_q);
  pose_ref_ = closed_ = pose_;
}

void TorqueLaw::start(const std::vector<double> & effort_before)
{
  pose_.assign(robot_.start_pose, robot_.start_pose + robot_.n_q);
  q_ref = q;
  qd_ref = qdd_ref = qdd_before_ = zeros_;
  reference_.start();
  payload_ = payload_from_ = payload_to_;
  for (int k = 0; k < 10; ++k) {  // with loops the state may be far from the start pose
    close(pose_, q);
  }
  pose_ref_ = pose_;
  compute_added();
  robot_.gravity(pose_.data(), payload_.data(), tau.data());
  // Controllers of ros2_control write zeros when they are deactivated, for one cycle where this one follows: no arm rests on it.
  const bool known = std::any_of(effort_before.begin(), effort_before.end(), [](double x) {return x != 0.0;});
  for (std::size_t k = 0; k < n_; ++k) {
    const double before = known ? effort_before[k] * options_.per_unit[k] + added_[k] : tau[k];
    tau_before_[k] = std::isfinite(before) ? before : tau[k];
    effort_before_[k] = tau_before_[k] - added_[k];
  }
  starts_ = true;
}

void TorqueLaw::bound_errors()
{
  std::vector<double> inertia(n_, 0.0), pose(pose_), moved(n_), still(n_), rate(n_);
  std::minstd_rand random(1);
  for (int sample = 0; sample < (robot_.has_loops ? 1 : kPoses); ++sample) {
    double indicator = 0.0;
    for (std::size_t k = 0; k < n_ && !robot_.has_loops; ++k) {
      const bool known = std::isfinite(robot_.lower[k]) && std::isfinite(robot_.upper[k]);
      const double share = static_cast<double>(random()) / static_cast<double>(std::minstd_rand::max());
      pose[k] = known ? robot_.lower[k] + share * (robot_.upper[k] - robot_.lower[k]) : 6.3 * share;
    }
    const auto torque = [&](std::vector<double> & found) {
        const double * const zeros = zeros_.data(), * const qdd = acceleration_.data(), * const payload = payload_to_.data();
        robot_.torque_and_rate(pose.data(), zeros, qdd, zeros, payload, found.data(), rate.data(), &indicator);
      };
    acceleration_ = zeros_;
    torque(still);
    for (std::size_t k = 0; k < n_; ++k) {
      acceleration_[k] = 1.0;
      torque(moved);
      acceleration_[k] = 0.0;
      inertia[k] = std::max(inertia[k], moved[k] - still[k]);
    }
  }
  const auto finite_or = [](double x, double otherwise) {return std::isfinite(x) ? x : otherwise;};
  const auto bound = [](double torque, double gain) {return torque < 1e200 && gain > 0.0 ? torque / gain : kUnlimited;};
  auto & limits = reference_.limits;
  limits = {options_.catch_up_velocity, zeros_, zeros_, zeros_, options_.max_position_error, zeros_, zeros_, zeros_};
  for (std::size_t k = 0; k < n_; ++k) {
    const double K = options_.stiffness[k], D = options_.damping[k];
    const double unit = options_.mode == Mode::kComputedTorque ? inertia[k] : 1.0;
    // Torques of the feedback that the torque rate can follow: K / D is half of the frequency of critically damped gains.
    const double most = kFeedbackShare * options_.max_effort[k];
    const double budget = std::min(most, D > 0.0 && K > 0.0 ? options_.max_effort_rate[k] * D / (2.0 * K) : kUnlimited);
    limits.error[k] = bound(budget, unit * K);
    limits.most_error[k] = bound(most, unit * K);
    limits.error_rate[k] = bound(budget, unit * D);
    limits.speed[k] = finite_or(robot_.velocity[k], kUnlimited);
    limits.step[k] = kStepTime * limits.speed[k];
    limits.velocity[k] = limits.velocity[k] > 0.0 ? limits.velocity[k] : std::min(kCatchUpVelocity, 0.25 * limits.speed[k]);
    limits.distance[k] = options_.mode == Mode::kGravity ? kUnlimited : limits.distance[k];  // there is no reference
    limits.acceleration[k] = std::min(
      {kAcceleration, finite_or(robot_.acceleration[k], kUnlimited), kMotionShare * options_.max_effort[k] / inertia[k]});
    brake_[k] = budget < 1e200 ? budget / limits.speed[k] : 0.0;
  }
}

void TorqueLaw::update(double dt, bool rests) noexcept
{
  advance_payload(dt);
  reference_.update(q, qd, q_ref, qd_ref, qdd_ref, dt, rests);
  close(pose_, q);
  close(pose_ref_, reference_.q);
  for (std::size_t k = 0; k < n_; ++k) {
    jerk_[k] = dt > 0.0 ? (reference_.qdd[k] - qdd_before_[k]) / dt : 0.0;
  }
  qdd_before_ = reference_.qdd;
  compute_added();
  compute_torque();
  command(dt);
}

void TorqueLaw::release() noexcept
{
  close(pose_, q);
  compute_added();
  robot_.gravity(pose_.data(), payload_.data(), tau.data());
  for (std::size_t k = 0; k < n_; ++k) {
    effort[k] = (tau[k] - added_[k]) / options_.per_unit[k];
  }
  tau_rate = zeros_;
}

void TorqueLaw::advance_payload(double dt) noexcept
{
  // Torques are linear in the ten numbers: a linear change of these is a linear change of the torques.
  payload_age_ = std::min(payload_age_ + dt, options_.payload_time);
  const double share = options_.payload_time > 0.0 ? payload_age_ / options_.payload_time : 1.0;
  for (std::size_t k = 0; k < payload_.size(); ++k) {
    payload_[k] = payload_from_[k] + share * (payload_to_[k] - payload_from_[k]);
  }
}

void TorqueLaw::close(std::vector<double> & pose, const std::vector<double> & joints) noexcept
{
  for (std::size_t k = 0; k < n_; ++k) {
    pose[static_cast<std::size_t>(robot_.active[k])] = joints[k];
  }
  for (int step = 0; robot_.close_step != nullptr && step < kClosingSteps; ++step) {
    double gap = 0.0, indicator = 0.0;
    robot_.close_step(pose.data(), closed_.data(), &gap, &indicator);
    pose = closed_;
  }
}

void TorqueLaw::compute_torque() noexcept
{
  const auto & K = options_.stiffness;
  const auto & D = options_.damping;
  double indicator = 0.0;
  unsigned fast = 0;
  for (std::size_t k = 0; k < n_; ++k) {
    fast |= std::abs(qd[k]) > kOverspeed * reference_.limits.speed[k] && brake_[k] > 0.0;
  }
  if (fast != 0 && options_.mode != Mode::kGravity) {
    // At this speed the model's torques exceed the limits: a part of them would drive joints. Damping of each does not.
    robot_.gravity(pose_.data(), payload_.data(), tau.data());
    tau_rate = zeros_;
    for (std::size_t k = 0; k < n_; ++k) {
      tau[k] -= brake_[k] * qd[k];
    }
    return;
  }
  if (options_.mode == Mode::kGravity) {
    robot_.gravity_and_rate(pose_.data(), qd.data(), payload_.data(), tau.data(), tau_rate.data());
    for (std::size_t k = 0; k < n_; ++k) {
      tau[k] -= D[k] * qd[k];
    }
    return;
  }
  for (std::size_t k = 0; k < n_; ++k) {
    feedback_[k] = K[k] * reference_.error[k] + D[k] * reference_.error_rate[k];
    feedback_rate_[k] = K[k] * reference_.error_rate[k];  // the measured acceleration is unknown: that of the reference counts
  }
  if (options_.mode == Mode::kComputedTorque) {
    for (std::size_t k = 0; k < n_; ++k) {
      acceleration_[k] = reference_.qdd[k] + feedback_[k];
      jerk_[k] += feedback_rate_[k] - D[k] * feedback_[k];  // the joint has this acceleration, if the model is right
    }
    robot_.torque_and_rate(
      pose_.data(), qd.data(), acceleration_.data(), jerk_.data(), payload_.data(), tau.data(), tau_rate.data(), &indicator);
    compensate_friction();
    return;
  }
  const bool at_reference = options_.mode == Mode::kFeedforward;
  robot_.torque_and_rate(
    at_reference ? pose_ref_.data() : pose_.data(), at_reference ? reference_.qd.data() : qd.data(), reference_.qdd.data(),
    jerk_.data(), payload_.data(), tau.data(), tau_rate.data(), &indicator);
  acceleration_ = reference_.qdd;
  compensate_friction();
  for (std::size_t k = 0; k < n_; ++k) {
    tau[k] += feedback_[k];
    tau_rate[k] += feedback_rate_[k];
  }
}

void TorqueLaw::compensate_friction() noexcept
{
  // The model's torque contains the friction of the velocity that it was called with.
  const bool has_reference = options_.mode == Mode::kFeedforward;
  const auto source = options_.friction;
  if (robot_.friction == nullptr || source == (has_reference ? FrictionSource::kReference : FrictionSource::kMeasured)) {
    return;
  }
  const auto add = [this](const std::vector<double> & velocity, const std::vector<double> & acceleration, double sign) {
      robot_.friction(velocity.data(), acceleration.data(), friction_.data(), friction_rate_.data());
      for (std::size_t k = 0; k < n_; ++k) {
        tau[k] += sign * friction_[k];
        tau_rate[k] += sign * friction_rate_[k];
      }
    };
  add(has_reference ? reference_.qd : qd, acceleration_, -1.0);
  if (source != FrictionSource::kNone) {
    add(source == FrictionSource::kReference ? reference_.qd : qd, reference_.qdd, 1.0);
  }
}

void TorqueLaw::compute_added() noexcept
{
  if (options_.contains == RNEA_TOTAL) {
    return;  // added_ stays zero
  }
  robot_.gravity(pose_.data(), payload_.data(), added_.data());
  if (options_.contains == RNEA_WITHOUT_GRAVITY_AND_FRICTION && robot_.friction != nullptr) {
    robot_.friction(qd.data(), zeros_.data(), friction_.data(), friction_rate_.data());
    for (std::size_t k = 0; k < n_; ++k) {
      added_[k] += friction_[k];
    }
  }
}

void TorqueLaw::command(double dt) noexcept
{
  age_ = starts_ ? 0.0 : age_ + dt;
  const double left = options_.activation_time > 0.0 ? 1.0 - smooth_step(age_ / options_.activation_time) : 0.0;
  unsigned limits = 0;
  for (std::size_t k = 0; k < n_; ++k) {
    offset_[k] = starts_ ? tau_before_[k] - tau[k] : offset_[k];
    double wanted = tau[k] + left * offset_[k];
    wanted = std::isfinite(wanted) ? wanted : tau_before_[k];
    double allowed = clamp(wanted, 0.0, options_.max_effort[k]);
    allowed = clamp(allowed, tau_before_[k], options_.max_effort_rate[k] * dt);
    allowed = added_[k] + clamp(allowed - added_[k], effort_before_[k], options_.max_commanded_effort_rate[k] * dt);
    limits |= allowed != wanted;
    tau[k] = tau_before_[k] = allowed;
    effort_before_[k] = allowed - added_[k];
    effort[k] = effort_before_[k] / options_.per_unit[k];
    utilization[k] = std::max(std::abs(allowed) / options_.max_effort[k], std::abs(tau_rate[k]) / options_.max_effort_rate[k]);
  }
  limited_ = limits != 0;
  starts_ = false;
}

}  // namespace rnea_controllers
