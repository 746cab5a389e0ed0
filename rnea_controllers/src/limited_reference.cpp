#include "rnea_controllers/limited_reference.hpp"

#include <algorithm>
#include <cmath>

namespace rnea_controllers
{
namespace
{

constexpr double kTwoPi = 6.283185307179586;
// Within its limits the offset is a linear system of third order with three poles here [1/s].
constexpr double kPole = 8.0;
constexpr double kLeastShare = 0.2;  // of the velocity of the motion back, where the reference is as fast as the joint may be
constexpr double kGrowthTime = 0.2;  // s
constexpr double kArrived = 1e-6;  // rad, m, and per s, and 1e-3 per s^2: below all of them the offset is zero

double clamp(double x, double radius) noexcept { return std::min(radius, std::max(-radius, x)); }

}  // namespace

LimitedReference::LimitedReference(const rnea_robot_api & robot)
: robot_(robot)
{
  for (auto * array : {&q, &qd, &qdd, &error, &error_rate, &offset_, &offset_rate_, &offset_acceleration_, &given_}) {
    array->assign(static_cast<std::size_t>(robot.n), 0.0);
  }
}

void LimitedReference::start() noexcept
{
  std::fill(error.begin(), error.end(), 0.0);
  error_rate = error;
  starts_ = true;
}

double LimitedReference::difference(std::size_t joint, double a, double b) const noexcept
{
  const double found = a - b;
  return robot_.joint_types[joint] == RNEA_CONTINUOUS ? found - kTwoPi * std::nearbyint(found / kTwoPi) : found;
}

void LimitedReference::update(
  const std::vector<double> & q_measured, const std::vector<double> & qd_measured, const std::vector<double> & q_given,
  const std::vector<double> & qd_given, const std::vector<double> & qdd_given, double dt, bool rests) noexcept
{
  unsigned far = 0;
  for (std::size_t k = 0; k < q.size(); ++k) {
    far |= std::abs(difference(k, q_given[k], q_measured[k])) > limits.distance[k];
  }
  is_far_ = far != 0 && !rests;
  rests = rests || is_far_;
  const bool starts = starts_, all_begin = starts || rests != rests_;
  starts_ = false;
  rests_ = rests;
  for (std::size_t k = 0; k < q.size(); ++k) {
    // At rest the offset is the position itself, and only its velocity goes to zero.
    const double goal = rests ? 0.0 : q_given[k], goal_rate = rests ? 0.0 : qd_given[k];
    const double goal_acceleration = rests ? 0.0 : qdd_given[k];
    const bool begins = all_begin || std::abs(difference(k, q_given[k], given_[k])) > limits.step[k];
    given_[k] = q_given[k];
    double offset = begins ? difference(k, q_measured[k] + error[k], goal) : offset_[k];
    double rate = begins ? qd_measured[k] + error_rate[k] - goal_rate : offset_rate_[k];
    double acceleration = starts ? 0.0 : begins ? qdd[k] - goal_acceleration : offset_acceleration_[k];
    const double room = std::max(kLeastShare * limits.velocity[k], limits.speed[k] - std::abs(goal_rate));
    const double wanted_rate = rests ? 0.0 : clamp(-kPole / 3.0 * offset, std::min(limits.velocity[k], room));
    const double wanted = clamp(kPole * (wanted_rate - rate), limits.acceleration[k]);
    acceleration += (wanted - acceleration) * std::min(1.0, 3.0 * kPole * dt);
    rate += acceleration * dt;
    offset += rate * dt;
    const bool arrived = !rests && std::max({std::abs(offset), std::abs(rate), 1e-3 * std::abs(acceleration)}) < kArrived;
    const double kept = arrived ? 0.0 : 1.0;
    offset *= kept;
    rate *= kept;
    acceleration *= kept;
    const double e = difference(k, goal + offset, q_measured[k]), ed = goal_rate + rate - qd_measured[k];
    const double grown = std::max(limits.error[k], std::abs(error[k]) + limits.error[k] * std::min(1.0, dt / kGrowthTime));
    error[k] = clamp(e, std::min(grown, limits.most_error[k]));
    error_rate[k] = clamp(ed, limits.error_rate[k]);
    offset_[k] = offset + (error[k] - e);
    offset_rate_[k] = rate + (error_rate[k] - ed);
    offset_acceleration_[k] = acceleration;
    q[k] = goal + offset_[k];
    qd[k] = goal_rate + offset_rate_[k];
    qdd[k] = goal_acceleration + acceleration;
  }
}

}  // namespace rnea_controllers
