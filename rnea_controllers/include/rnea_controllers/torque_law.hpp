// Joint torques of one control cycle, without ROS: control law, effort convention, limits, blending.
#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "rnea_controllers/limited_reference.hpp"
#include "rnea_controllers/rnea_robot_api.h"

namespace rnea_controllers
{

/// Control laws. e and ed are the errors of position and velocity, K and D stiffness and damping:
///   gravity          tau = g(q) - D qd
///   feedforward      tau = ID(q_ref, qd_ref, qdd_ref) + K e + D ed          K [N m/rad], D [N m s/rad]
///   computed_torque  tau = ID(q, qd, qdd_ref + K e + D ed)                  K [1/s^2], D [1/s]
///   joint_impedance  tau = ID(q, qd, qdd_ref) + K e + D ed                  K [N m/rad], D [N m s/rad]
enum class Mode { kGravity, kFeedforward, kComputedTorque, kJointImpedance };

/// Velocity at which the model's friction is compensated: none, that of the reference, or the measured one.
enum class FrictionSource { kNone, kReference, kMeasured };

using Payload = std::array<double, 10>;

/// Limit that is none: finite, since its product with a duration of zero must be zero.
constexpr double kUnlimited = 1e300;

/// Options of a TorqueLaw; vectors have n numbers.
struct TorqueLawOptions
{
  Mode mode = Mode::kGravity;
  FrictionSource friction = FrictionSource::kReference;
  std::vector<double> stiffness, damping;
  // Of the whole torque and of its rate, and of its rate without what the robot adds [N m, N, and per s]; kUnlimited: none.
  std::vector<double> max_effort, max_effort_rate, max_commanded_effort_rate;
  int contains = RNEA_TOTAL;  ///< what commanded efforts contain, see rnea_effort
  std::vector<double> per_unit;  ///< joint torque per unit of the commanded effort
  // Times in which the torque of the start fades out, and in which a new payload replaces the last one [s].
  double activation_time = 0.5, payload_time = 0.5;
  // Of the motion back to a reference that joints have left, 0: by the velocity limit; beyond which the arm is held at rest.
  std::vector<double> catch_up_velocity, max_position_error;
};

/// Torque law of one robot. Inputs and outputs are public arrays of n numbers in the order of the exported robot.
///
/// `update` does not allocate, lock, throw or call the system.
class TorqueLaw
{
public:
  TorqueLaw(const rnea_robot_api & robot, TorqueLawOptions options);

  std::vector<double> q, qd;                   ///< measured state
  std::vector<double> q_ref, qd_ref, qdd_ref;  ///< reference
  std::vector<double> effort;                  ///< result: commanded efforts, in the robot's convention
  std::vector<double> tau, tau_rate;           ///< result: whole torques, and the model's rates of them
  std::vector<double> utilization;             ///< result: largest share of the limits of torque and torque rate

  /// Begin at the measured state. effort_before: efforts commanded last (n numbers); one that is not finite counts as gravity,
  /// and so do zeros of all joints.
  void start(const std::vector<double> & effort_before);
  /// Set the payload that is reached after payload_time.
  void set_payload(const Payload & payload) noexcept
  { payload_from_ = payload_; payload_to_ = payload; payload_age_ = 0.0; }
  /// Bound errors and the motion back to a reference by the limits of torque and torque rate, with the largest inertias that
  /// the robot and the payload have in many poses.
  void bound_errors();
  /// Compute efforts of the state and the reference; dt: duration of the cycle [s]; rests: bring the joints to rest, and hold
  /// them, at any reference.
  void update(double dt, bool rests) noexcept;
  /// Compute the efforts of gravity at the measured pose, which nothing limits.
  void release() noexcept;
  /// Return the reference that the law follows.
  const LimitedReference & reference() const noexcept { return reference_; }
  /// Return whether a limit changed the torques of the last call.
  bool limited() const noexcept { return limited_; }

private:
  void advance_payload(double dt) noexcept;
  void close(std::vector<double> & pose, const std::vector<double> & joints) noexcept;
  void compute_torque() noexcept;
  void compensate_friction() noexcept;
  void compute_added() noexcept;
  void command(double dt) noexcept;

  const rnea_robot_api & robot_;
  TorqueLawOptions options_;
  std::size_t n_;
  LimitedReference reference_;
  std::vector<double> pose_, pose_ref_, closed_;  // n_q
  std::vector<double> acceleration_, jerk_, qdd_before_, zeros_, feedback_, feedback_rate_;
  std::vector<double> friction_, friction_rate_, added_, offset_, effort_before_, tau_before_, brake_;
  Payload payload_{}, payload_from_{}, payload_to_{};
  double payload_age_ = 0.0, age_ = 0.0;
  bool starts_ = true, limited_ = false;
};

}  // namespace rnea_controllers
