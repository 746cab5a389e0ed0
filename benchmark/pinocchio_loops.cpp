// Timed loops around Pinocchio, from its headers, so that all of it is compiled for this machine as its users would do it.
// A loop walks through a few states over and over.
#include <chrono>
#include <cstring>
#include <string>
#include <vector>

#include <pinocchio/multibody.hpp>
#include <pinocchio/algorithm/aba.hpp>
#include <pinocchio/algorithm/crba.hpp>
#include <pinocchio/algorithm/rnea-derivatives.hpp>
#include <pinocchio/algorithm/rnea.hpp>

namespace pin = pinocchio;
using Vector = Eigen::VectorXd;
using Matrix = Eigen::MatrixXd;

namespace {

struct State { Vector q, v, a, j; };

struct Robot {
  pin::Model model;
  pin::Data data;
  std::vector<State> states;
  Matrix dq, dv, M;
  Vector tau, tau_rate;
};

// dtau/dq v + dtau/dv a + M j: what Pinocchio can say exactly about the rate.
void exact_rate(Robot &r, const State &s) {
  pin::computeRNEADerivatives(r.model, r.data, s.q, s.v, s.a, r.dq, r.dv, r.M);
  r.tau_rate.noalias() = r.dq * s.v;
  r.tau_rate.noalias() += r.dv * s.a;
  r.tau_rate.noalias() += r.M.selfadjointView<Eigen::Upper>() * s.j;
}

// (tau(t + h) - tau(t)) / h along the motion: wrong from the seventh digit on.
void forward_difference(Robot &r, const State &s) {
  const double h = 1e-7;
  r.tau = pin::rnea(r.model, r.data, s.q, s.v, s.a);
  const Vector q = pin::integrate(r.model, s.q, h * s.v), v = s.v + h * s.a, a = s.a + h * s.j;
  r.tau_rate = (pin::rnea(r.model, r.data, q, v, a) - r.tau) / h;
}

template <class Body> double seconds(Robot &r, long count, Body body) {
  const size_t n = r.states.size();
  const auto start = std::chrono::steady_clock::now();
  for (long k = 0; k < count; ++k) body(r.states[k % n]);
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

template <class Joint> pin::JointModel made() { return pin::JointModel(Joint()); }

pin::JointModel joint(const std::string &kind, const Eigen::Vector3d &axis) {
  if (kind == "JointModelRX") return made<pin::JointModelRX>();
  if (kind == "JointModelRY") return made<pin::JointModelRY>();
  if (kind == "JointModelRZ") return made<pin::JointModelRZ>();
  if (kind == "JointModelPX") return made<pin::JointModelPX>();
  if (kind == "JointModelPY") return made<pin::JointModelPY>();
  if (kind == "JointModelPZ") return made<pin::JointModelPZ>();
  if (kind == "JointModelRUBX") return made<pin::JointModelRUBX>();
  if (kind == "JointModelRUBY") return made<pin::JointModelRUBY>();
  if (kind == "JointModelRUBZ") return made<pin::JointModelRUBZ>();
  if (kind == "JointModelFreeFlyer") return made<pin::JointModelFreeFlyer>();
  if (kind == "JointModelPrismaticUnaligned") return pin::JointModel(pin::JointModelPrismaticUnaligned(axis));
  if (kind == "JointModelRevoluteUnboundedUnaligned") return pin::JointModel(pin::JointModelRevoluteUnboundedUnaligned(axis));
  if (kind == "JointModelRevoluteUnaligned") return pin::JointModel(pin::JointModelRevoluteUnaligned(axis));
  throw std::invalid_argument(kind);
}

}  // namespace

extern "C" {

// A model without joints.
void *robot_new() { return new Robot; }

void robot_delete(void *robot) { delete static_cast<Robot *>(robot); }

// numbers: axis (3), rotation by rows (9) and position (3) of the joint in its parent; mass, centre (3) and inertia about it (6:
// xx, xy, yy, xz, yz, zz). False: unknown kind.
bool robot_add_joint(void *robot, long parent, const char *kind, const double *numbers) {
  auto &model = static_cast<Robot *>(robot)->model;
  const Eigen::Matrix3d R = Eigen::Map<const Eigen::Matrix<double, 3, 3, Eigen::RowMajor>>(numbers + 3);
  const Eigen::Vector3d axis = Eigen::Map<const Eigen::Vector3d>(numbers), p = Eigen::Map<const Eigen::Vector3d>(numbers + 12);
  try {
    const auto id = model.addJoint(parent, joint(kind, axis), pin::SE3(R, p), "joint" + std::to_string(model.njoints));
    const double *i = numbers + 15;
    const pin::Symmetric3 inertia(i[4], i[5], i[6], i[7], i[8], i[9]);
    model.appendBodyToJoint(id, pin::Inertia(i[0], Eigen::Vector3d(i[1], i[2], i[3]), inertia));
  } catch (const std::invalid_argument &) {
    return false;
  }
  return true;
}

// When all joints are there; states: q, v, a, j of one state after another.
void robot_states(void *robot, const double *states, long count) {
  auto &r = *static_cast<Robot *>(robot);
  r.data = pin::Data(r.model);
  const long nq = r.model.nq, nv = r.model.nv;
  for (long k = 0; k < count; ++k, states += nq + 3 * nv) {
    const auto part = [&](long from, long size) { return Vector(Eigen::Map<const Vector>(states + from, size)); };
    r.states.push_back({part(0, nq), part(nq, nv), part(nq + nv, nv), part(nq + 2 * nv, nv)});
  }
  r.dq = r.dv = r.M = Matrix::Zero(nv, nv);
  r.tau = r.tau_rate = Vector::Zero(nv);
}

// Negative: no such name.
double robot_seconds(void *robot, const char *name, long count) {
  auto &r = *static_cast<Robot *>(robot);
  const auto is = [name](const char *other) { return std::strcmp(name, other) == 0; };
  if (is("rnea")) return seconds(r, count, [&](const State &s) { pin::rnea(r.model, r.data, s.q, s.v, s.a); });
  if (is("exact rate")) return seconds(r, count, [&](const State &s) { exact_rate(r, s); });
  if (is("difference")) return seconds(r, count, [&](const State &s) { forward_difference(r, s); });
  if (is("derivatives"))
    return seconds(r, count, [&](const State &s) {
      pin::computeRNEADerivatives(r.model, r.data, s.q, s.v, s.a, r.dq, r.dv, r.M);
    });
  for (const auto convention : {pin::Convention::WORLD, pin::Convention::LOCAL}) {
    const std::string where = convention == pin::Convention::WORLD ? " world" : " local";
    if (is(("crba" + where).c_str()))
      return seconds(r, count, [&](const State &s) { pin::crba(r.model, r.data, s.q, convention); });
    if (is(("aba" + where).c_str()))
      return seconds(r, count, [&](const State &s) { pin::aba(r.model, r.data, s.q, s.v, s.a, convention); });
  }
  return -1.0;
}

// tau and tau_rate (nv each) of the first state: to see that both sides compute the same.
void robot_results(void *robot, double *tau, double *tau_rate) {
  auto &r = *static_cast<Robot *>(robot);
  exact_rate(r, r.states[0]);
  Eigen::Map<Vector>(tau_rate, r.model.nv) = r.tau_rate;
  Eigen::Map<Vector>(tau, r.model.nv) = pin::rnea(r.model, r.data, r.states[0].q, r.states[0].v, r.states[0].a);
}
}
