#include "rnea_controllers/torque_law.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace rnea_controllers
{
namespace
{

constexpr double kTwoPi = 6.283185307179586;
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
: robot_(robot), options_(std::move(options)), n_(static_cast<std::size_t>(robot.n))
{
  for (auto * array : {&q, &qd, &q_ref, &qd_ref, &qdd_ref, &effort, &tau, &tau_rate, &utilization, &error_, &error_rate_,
      &acceleration_, &jerk_, &qdd_before_, &zeros_, &feedback_, &feedback_rate_, &gravity_, &gravity_rate_, &friction_,
      &friction_rate_, &added_, &offset_, &effort_before_, &tau_before_})
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
  payload_ = payload_from_ = payload_to_;
  for (int k = 0; k < 10; ++k) {  // with loops the state may be far from the start pose
    close(pose_, q);
  }
  pose_ref_ = pose_;
  compute_added();
  // Controllers of ros2_control write zeros when they are deactivated, for one cycle where this one follows: no arm rests on them.
  const bool known = std::any_of(effort_before.begin(), effort_before.end(), [](double x) {return x != 0.0;});
  for (std::size_t k = 0; k < n_; ++k) {
    const double before = known ? effort_before[k] * options_.per_unit[k] + added_[k] : gravity_[k];
    tau_before_[k] = std::isfinite(before) ? before : gravity_[k];
    effort_before_[k] = tau_before_[k] - added_[k];
  }
  starts_ = true;
}

void TorqueLaw::set_payload(const Payload & payload) noexcept
{
  payload_from_ = payload_;
  payload_to_ = payload;
  payload_age_ = 0.0;
}

void TorqueLaw::update(double dt) noexcept
{
  advance_payload(dt);
  close(pose_, q);
  close(pose_ref_, q_ref);
  for (std::size_t k = 0; k < n_; ++k) {
    const double e = q_ref[k] - q[k];
    error_[k] = robot_.joint_types[k] == RNEA_CONTINUOUS ? e - kTwoPi * std::nearbyint(e / kTwoPi) : e;
    error_rate_[k] = qd_ref[k] - qd[k];
    jerk_[k] = dt > 0.0 ? (qdd_ref[k] - qdd_before_[k]) / dt : 0.0;
  }
  qdd_before_ = qdd_ref;
  compute_torque();
  compute_added();
  command(dt, true);
}

void TorqueLaw::hold(double dt) noexcept
{
  advance_payload(dt);
  close(pose_, q);
  compute_added();
  tau = gravity_;
  tau_rate = zeros_;
  command(dt, false);
  starts_ = true;  // the first torque after the hold continues from it
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
  if (options_.mode == Mode::kGravity) {
    robot_.gravity_and_rate(pose_.data(), qd.data(), payload_.data(), tau.data(), tau_rate.data());
    for (std::size_t k = 0; k < n_; ++k) {
      tau[k] -= D[k] * qd[k];
    }
    return;
  }
  for (std::size_t k = 0; k < n_; ++k) {
    feedback_[k] = K[k] * error_[k] + D[k] * error_rate_[k];
    feedback_rate_[k] = K[k] * error_rate_[k];  // the measured acceleration is unknown: that of the reference counts
  }
  if (options_.mode == Mode::kComputedTorque) {
    for (std::size_t k = 0; k < n_; ++k) {
      acceleration_[k] = qdd_ref[k] + feedback_[k];
      jerk_[k] += feedback_rate_[k] - D[k] * feedback_[k];  // the joint has this acceleration, if the model is right
    }
    robot_.torque_and_rate(
      pose_.data(), qd.data(), acceleration_.data(), jerk_.data(), payload_.data(), tau.data(), tau_rate.data(), &indicator);
    compensate_friction();
    return;
  }
  const bool at_reference = options_.mode == Mode::kFeedforward;
  robot_.torque_and_rate(
    at_reference ? pose_ref_.data() : pose_.data(), at_reference ? qd_ref.data() : qd.data(), qdd_ref.data(), jerk_.data(),
    payload_.data(), tau.data(), tau_rate.data(), &indicator);
  acceleration_ = qdd_ref;
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
  if (robot_.friction == nullptr ||
    source == (has_reference ? FrictionSource::kReference : FrictionSource::kMeasured))
  {
    return;
  }
  const auto add = [this](const std::vector<double> & velocity, const std::vector<double> & acceleration, double sign) {
      robot_.friction(velocity.data(), acceleration.data(), friction_.data(), friction_rate_.data());
      for (std::size_t k = 0; k < n_; ++k) {
        tau[k] += sign * friction_[k];
        tau_rate[k] += sign * friction_rate_[k];
      }
    };
  add(has_reference ? qd_ref : qd, acceleration_, -1.0);
  if (source != FrictionSource::kNone) {
    add(source == FrictionSource::kReference ? qd_ref : qd, qdd_ref, 1.0);
  }
}

void TorqueLaw::compute_added() noexcept
{
  robot_.gravity(pose_.data(), payload_.data(), gravity_.data());
  if (options_.contains == RNEA_TOTAL) {
    return;  // added_ stays zero
  }
  added_ = gravity_;
  if (options_.contains == RNEA_WITHOUT_GRAVITY_AND_FRICTION && robot_.friction != nullptr) {
    robot_.friction(qd.data(), zeros_.data(), friction_.data(), friction_rate_.data());
    for (std::size_t k = 0; k < n_; ++k) {
      added_[k] += friction_[k];
    }
  }
}

void TorqueLaw::command(double dt, bool blends) noexcept
{
  age_ = starts_ ? 0.0 : age_ + dt;
  const double left = blends && options_.activation_time > 0.0 ? 1.0 - smooth_step(age_ / options_.activation_time) : 0.0;
  unsigned limits = 0;
  for (std::size_t k = 0; k < n_; ++k) {
    offset_[k] = starts_ ? tau_before_[k] - tau[k] : offset_[k];
    double wanted = tau[k] + left * offset_[k];
    wanted = std::isfinite(wanted) ? wanted : gravity_[k];
    double allowed = clamp(wanted, 0.0, options_.max_effort[k]);
    allowed = clamp(allowed, tau_before_[k], options_.max_effort_rate[k] * dt);
    allowed = added_[k] + clamp(allowed - added_[k], effort_before_[k], options_.max_commanded_effort_rate[k] * dt);
    limits |= allowed != wanted;
    tau[k] = tau_before_[k] = allowed;
    effort_before_[k] = allowed - added_[k];
    effort[k] = effort_before_[k] / options_.per_unit[k];
    utilization[k] = std::max(
      std::abs(allowed) / options_.max_effort[k], std::abs(tau_rate[k]) / options_.max_effort_rate[k]);
  }
  limited_ = limits != 0;
  starts_ = false;
}

}  // namespace rnea_controllers
