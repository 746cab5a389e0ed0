// Trajectory played along its own path: a local clock that pauses, slows and stops, without ROS.
#pragma once

#include <cstddef>
#include <vector>

#include "rnea_controllers/rnea_robot_api.h"

namespace rnea_controllers
{

/// Knots of a trajectory of n joints. Between two knots every joint follows the quintic polynomial through positions,
/// velocities and accelerations of both; the last knot is at rest.
struct Trajectory
{
  double begin = 0.0;         ///< time at which the new part begins, before which knots of the last trajectory stand [s]
  std::vector<double> times;  ///< ascending [s]
  std::vector<double> q, qd, qdd;  ///< knots * n

  /// Return the knots of a trajectory before the first one of this, followed by these: one curve where both share that knot.
  Trajectory after(const Trajectory & before, std::size_t n) const;
};

/// Player of a trajectory. Its clock has the rate lambda, 1 as planned, and moves towards the override:
///   q = path(s),  qd = lambda path',  qdd = lambda^2 path'' + lambda' path'
/// Changes of lambda keep the limits of torque and torque rate of a robot as far as the path allows: both are linear in lambda'
/// and lambda''. Without payload. No method but the constructor allocates, locks, throws or calls the system.
class PathPlayer
{
public:
  /// robot : limits and dynamics, or nullptr; change_time: time in which lambda reaches the override [s]
  PathPlayer(std::size_t n, const rnea_robot_api * robot, double change_time, double start_tolerance);

  std::vector<double> q, qd, qdd;  ///< result: reference
  double override_rate = 1.0;      ///< input: target of lambda, 0 to 1

  /// Hold a pose at rest.
  void start(const std::vector<double> & pose) noexcept;
  /// Play a trajectory from now on; return false, and go on as before, if it does not continue the reference.
  bool play(const Trajectory & trajectory) noexcept;
  /// Come to rest on the path, then forget the rest of it.
  void stop() noexcept { stops_ = true; }
  /// Advance the reference by a cycle; now: time by the clock of the trajectories [s].
  void update(double now, double dt) noexcept;

  bool idle() const noexcept { return trajectory_ == nullptr; }
  double rate() const noexcept { return rate_; }
  double path_time() const noexcept { return s_; }

private:
  void sample(const Trajectory & trajectory, double s) noexcept;
  void change_rate(double dt) noexcept;
  void limit(double dt, double & low, double & high) noexcept;

  std::size_t n_;
  const rnea_robot_api * robot_;
  double change_time_, start_tolerance_;
  const Trajectory * trajectory_ = nullptr;
  double s_ = 0.0, rate_ = 1.0, rate_slope_ = 0.0;
  std::size_t segment_ = 0;
  bool stops_ = false, waits_ = false;
  std::vector<double> x_, x1_, x2_, x3_;  // path and its derivatives by s
  std::vector<double> jerk_, tau_, tau_rate_, more_, pushed_;
};

}  // namespace rnea_controllers
