// Reference that joints can follow, also where they cannot follow the given one: continuous, near the joints, with limited accelerations.
#pragma once

#include <vector>

#include "rnea_controllers/rnea_robot_api.h"

namespace rnea_controllers
{

/// Limits of a LimitedReference; n numbers each [rad, m, and per s, per s^2], kUnlimited: none.
///   velocity     of the motion towards the given reference, relative to it
///   speed        of the joint, within which that motion stays as far as the given reference does
///   acceleration of that motion, and with which joints are brought to rest
///   step         of the given reference in a cycle: beyond it that motion begins
///   distance     between given reference and joint: beyond it the joints are brought to rest
///   error        of the position that the feedback acts on; it may grow by as much in kGrowthTime, up to most_error
///   error_rate   of the velocity that the feedback acts on
struct ReferenceLimits
{
  std::vector<double> velocity, speed, acceleration, step, distance, error, most_error, error_rate;
};

/// Reference of the torque law. It is the given reference plus an offset, which is exactly zero as long as joints follow. After
/// a step of the given reference, lost states or a pose that was held the offset begins where the joints are, so that no error
/// jumps, and goes to zero along a motion with limited velocity and acceleration. Where joints do not follow, it slips with
/// them: errors never exceed those that the limits of torque and torque rate can brake.
class LimitedReference
{
public:
  explicit LimitedReference(const rnea_robot_api & robot);

  ReferenceLimits limits;
  std::vector<double> q, qd, qdd;         ///< result: reference
  std::vector<double> error, error_rate;  ///< result: its bounded distance from the measured state

  /// Begin at the measured state, with its velocity.
  void start() noexcept;
  /// Advance by a cycle. rests: bring the joints to rest and hold them, instead of following the given reference.
  void update(
    const std::vector<double> & q_measured, const std::vector<double> & qd_measured, const std::vector<double> & q_given,
    const std::vector<double> & qd_given, const std::vector<double> & qdd_given, double dt, bool rests) noexcept;
  /// Return whether the given reference is too far from the joints.
  bool is_far() const noexcept { return is_far_; }

private:
  double difference(std::size_t joint, double a, double b) const noexcept;

  const rnea_robot_api & robot_;
  std::vector<double> offset_, offset_rate_, offset_acceleration_, given_;
  bool starts_ = true, rests_ = false, is_far_ = false;
};

}  // namespace rnea_controllers
