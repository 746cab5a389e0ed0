#include "rnea_controllers/path_player.hpp"

#include <algorithm>
#include <cmath>

namespace rnea_controllers
{
namespace
{
constexpr double kBrakeShare = 0.9;  // of lambda'' that braking counts on, since limits change on the way
constexpr double kNoWrench = 1e-12;
}  // namespace

Trajectory Trajectory::after(const Trajectory & before, std::size_t n) const
{
  const auto kept = static_cast<std::size_t>(
    std::lower_bound(before.times.begin(), before.times.end(), times.front() - 1e-9) - before.times.begin());
  Trajectory found;
  found.begin = begin;
  const auto join = [](const std::vector<double> & first, std::size_t count, const std::vector<double> & second) {
      std::vector<double> all(first.begin(), first.begin() + static_cast<std::ptrdiff_t>(count));
      all.insert(all.end(), second.begin(), second.end());
      return all;
    };
  found.times = join(before.times, kept, times);
  found.q = join(before.q, kept * n, q);
  found.qd = join(before.qd, kept * n, qd);
  found.qdd = join(before.qdd, kept * n, qdd);
  return found;
}

PathPlayer::PathPlayer(std::size_t n, const rnea_robot_api * robot, double change_time, double start_tolerance)
: n_(n), robot_(robot), change_time_(change_time), start_tolerance_(start_tolerance)
{
  for (auto * array : {&q, &qd, &qdd, &x_, &x1_, &x2_, &x3_, &jerk_, &tau_, &tau_rate_, &more_, &pushed_}) {
    array->assign(n, 0.0);
  }
}

void PathPlayer::start(const std::vector<double> & pose) noexcept
{
  q = pose;
  std::fill(qd.begin(), qd.end(), 0.0);
  qdd = qd;
  trajectory_ = nullptr;
  stops_ = false;
  rate_slope_ = 0.0;
}

bool PathPlayer::play(const Trajectory & trajectory) noexcept
{
  const double s = idle() ? trajectory.begin : s_;
  if (s < trajectory.times.front() || stops_) {
    return false;
  }
  segment_ = 0;
  sample(trajectory, s);
  const double rate = idle() ? 1.0 : rate_;  // a trajectory that begins a motion begins at rest
  for (std::size_t k = 0; k < n_; ++k) {
    if (!(std::abs(x_[k] - q[k]) <= start_tolerance_ && std::abs(rate * x1_[k] - qd[k]) <= start_tolerance_)) {
      return false;
    }
  }
  if (idle()) {
    rate_ = override_rate;
    rate_slope_ = 0.0;
    waits_ = true;
  }
  trajectory_ = &trajectory;
  s_ = s;
  return true;
}

void PathPlayer::update(double now, double dt) noexcept
{
  if (idle()) {
    rate_ = override_rate;
    return;
  }
  waits_ = waits_ && now < trajectory_->begin;
  if (!waits_) {
    const double before = rate_;
    change_rate(dt);
    s_ += 0.5 * (before + rate_) * dt;
  }
  const double end = trajectory_->times.back();
  sample(*trajectory_, std::min(s_, end));
  for (std::size_t k = 0; k < n_; ++k) {
    q[k] = x_[k];
    qd[k] = rate_ * x1_[k];
    qdd[k] = rate_ * rate_ * x2_[k] + rate_slope_ * x1_[k];
  }
  const bool rests = stops_ && rate_ == 0.0;
  if (s_ >= end || rests) {
    start(q);
  }
}

void PathPlayer::sample(const Trajectory & trajectory, double s) noexcept
{
  const auto & times = trajectory.times;
  while (segment_ + 2 < times.size() && s >= times[segment_ + 1]) {
    ++segment_;
  }
  if (times.size() == 1 || s <= times.front()) {
    segment_ = 0;
  }
  const std::size_t next = std::min(segment_ + 1, times.size() - 1);
  const double h = std::max(1e-9, times[next] - times[segment_]);
  const double u = std::min(1.0, std::max(0.0, (s - times[segment_]) / h));
  for (std::size_t k = 0; k < n_; ++k) {
    const std::size_t a = segment_ * n_ + k, b = next * n_ + k;
    const double v0 = trajectory.qd[a] * h, v1 = trajectory.qd[b] * h;
    const double a0 = trajectory.qdd[a] * h * h, a1 = trajectory.qdd[b] * h * h;
    const double step = trajectory.q[b] - trajectory.q[a];
    const double c3 = 10.0 * step - 6.0 * v0 - 4.0 * v1 - 1.5 * a0 + 0.5 * a1;
    const double c4 = -15.0 * step + 8.0 * v0 + 7.0 * v1 + 1.5 * a0 - a1;
    const double c5 = 6.0 * step - 3.0 * (v0 + v1) - 0.5 * (a0 - a1);
    x_[k] = trajectory.q[a] + u * (v0 + u * (0.5 * a0 + u * (c3 + u * (c4 + u * c5))));
    x1_[k] = (v0 + u * (a0 + u * (3.0 * c3 + u * (4.0 * c4 + u * 5.0 * c5)))) / h;
    x2_[k] = (a0 + u * (6.0 * c3 + u * (12.0 * c4 + u * 20.0 * c5))) / (h * h);
    x3_[k] = (6.0 * c3 + u * (24.0 * c4 + u * 60.0 * c5)) / (h * h * h);
  }
}

void PathPlayer::change_rate(double dt) noexcept
{
  const double target = stops_ ? 0.0 : std::min(1.0, std::max(0.0, override_rate));
  if ((rate_ == target && rate_slope_ == 0.0) || !(dt > 0.0)) {
    return;
  }
  // As fast as |lambda''| <= curvature allows, also when it must brake at the end: a change of 1 takes change_time.
  const double curvature = 4.0 / (change_time_ * change_time_);
  double low = -curvature, high = curvature;
  if (robot_ != nullptr) {
    limit(dt, low, high);
  }
  const double distance = target - rate_ - rate_slope_ * dt;
  const double brake = kBrakeShare * std::max(0.0, distance < 0.0 ? high : -low);
  const double slope = std::copysign(std::sqrt(2.0 * brake * std::abs(distance)), distance);
  rate_slope_ += std::min(high, std::max(low, (slope - rate_slope_) / dt)) * dt;
  rate_ = std::max(0.0, rate_ + rate_slope_ * dt);
  if (std::abs(target - rate_) <= brake * dt * dt && std::abs(rate_slope_) <= 2.0 * brake * dt) {
    rate_ = target;
    rate_slope_ = 0.0;
  }
}

void PathPlayer::limit(double dt, double & low, double & high) noexcept
{
  // tau = tau_ + b (lambda' - now), tau_rate = tau_rate_ + b lambda'', with b = M path'.
  double indicator = 0.0;
  for (std::size_t k = 0; k < n_; ++k) {
    qd[k] = rate_ * x1_[k];
    qdd[k] = rate_ * rate_ * x2_[k] + rate_slope_ * x1_[k];
    jerk_[k] = rate_ * (rate_ * rate_ * x3_[k] + 3.0 * rate_slope_ * x2_[k]);
    more_[k] = qdd[k] + x1_[k];
  }
  robot_->torque_and_rate(x_.data(), qd.data(), qdd.data(), jerk_.data(), nullptr, tau_.data(), tau_rate_.data(), &indicator);
  robot_->inverse_dynamics(x_.data(), qd.data(), more_.data(), nullptr, pushed_.data());
  for (std::size_t k = 0; k < n_; ++k) {
    const double b = pushed_[k] - tau_[k];
    if (std::abs(b) < kNoWrench) {
      continue;
    }
    // Where both leave nothing, the middle of what the second allows is nearest.
    const double radii[2] = {robot_->effort_rate[k] / std::abs(b), robot_->effort[k] / (std::abs(b) * dt)};
    const double middles[2] = {-tau_rate_[k] / b, -tau_[k] / (b * dt)};
    for (int i = 0; i < 2; ++i) {
      if (std::isfinite(radii[i])) {
        const double from = std::max(low, middles[i] - radii[i]), to = std::min(high, middles[i] + radii[i]);
        low = from <= to ? from : std::min(high, std::max(low, middles[i]));
        high = from <= to ? to : low;
      }
    }
  }
}

}  // namespace rnea_controllers
