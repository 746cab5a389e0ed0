// C functions by which a Python test drives back ends of inverse_dynamics_solver, kinematics_interface and dynamics_interface.
//
// Vectors and matrices are by columns. Functions of solvers return the text of an exception, or ""; those of interfaces 0 or 1.

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "class_loader/class_loader.hpp"
#include "dynamics_interface/dynamics_interface.hpp"
#include "inverse_dynamics_solver/inverse_dynamics_solver.h"
#include "kinematics_interface/kinematics_interface.hpp"
#include "rclcpp/logging.hpp"

using Solver = inverse_dynamics_solver::InverseDynamicsSolver;
using Kinematics = kinematics_interface::KinematicsInterface;
using Dynamics = dynamics_interface::DynamicsInterface;

namespace
{

auto parameters = std::make_shared<rclcpp::node_interfaces::NodeParameters>();
std::unique_ptr<Solver> solver;
std::unique_ptr<Kinematics> kinematics;
std::string text;

Eigen::VectorXd vector(const double * values, int n) {return Eigen::Map<const Eigen::VectorXd>(values, n);}

const char * caught(const std::function<void()> & run)
{
  text = "";
  try {
    run();
  } catch (const std::exception & error) {
    text = error.what();
  }
  return text.c_str();
}

template<typename Matrix>
void write(const Matrix & matrix, double * out)
{
  Eigen::Map<Eigen::MatrixXd>(out, matrix.rows(), matrix.cols()) = matrix;
}

}  // namespace

extern "C" {

void bench_reset()
{
  parameters = std::make_shared<rclcpp::node_interfaces::NodeParameters>();
  rclcpp::log_lines().clear();
}

void bench_text(const char * name, const char * value) {parameters->declare_parameter(name, rclcpp::ParameterValue(value));}
void bench_numbers(const char * name, const double * values, int n)
{
  parameters->declare_parameter(name, rclcpp::ParameterValue(std::vector<double>(values, values + n)));
}
void bench_number(const char * name, double value) {parameters->declare_parameter(name, rclcpp::ParameterValue(value));}

const char * bench_log()
{
  text = rclcpp::log_lines().empty() ? "" : rclcpp::log_lines().back();
  return text.c_str();
}

const char * solver_make(const char * type)
{
  return caught([&] {
             solver = class_loader::create<Solver>(type);
             solver ? void() : throw std::runtime_error("no such class");
           });
}
const char * solver_initialize(const char * name_space, const char * description)
{
  return caught([&] {solver->initialize(parameters, name_space, description);});
}

const char * solver_inertia(const double * q, int n, double * out)
{
  return caught([&] {write(solver->getInertiaMatrix(vector(q, n)), out);});
}
const char * solver_coriolis(const double * q, const double * qd, int n, double * out)
{
  return caught([&] {write(solver->getCoriolisVector(vector(q, n), vector(qd, n)), out);});
}
const char * solver_gravity(const double * q, int n, double * out)
{
  return caught([&] {write(solver->getGravityVector(vector(q, n)), out);});
}
const char * solver_friction(const double * qd, int n, double * out)
{
  return caught([&] {write(solver->getFrictionVector(vector(qd, n)), out);});
}
const char * solver_torques(const double * q, const double * qd, const double * qdd, int n, double * out)
{
  return caught([&] {write(solver->getTorques(vector(q, n), vector(qd, n), vector(qdd, n)), out);});
}

int kinematics_make(const char * type)
{
  kinematics = class_loader::create<Kinematics>(type);
  return kinematics != nullptr;
}
// As the loader of dynamics_interface makes it.
int dynamics_make(const char * type)
{
  kinematics = class_loader::create<Dynamics>(type);
  return kinematics != nullptr;
}
int kinematics_initialize(const char * description, const char * name_space)
{
  return kinematics->initialize(description, parameters, name_space);
}

// out: rotation, position.
int kinematics_transform(const double * q, int n, const char * link, double * out)
{
  Eigen::Isometry3d transform;
  const bool done = kinematics->calculate_link_transform(vector(q, n), link, transform);
  write(Eigen::Matrix<double, 3, 4>(transform.matrix().topRows<3>()), out);
  return done;
}
int kinematics_jacobian(const double * q, int n, const char * link, int columns, double * out)
{
  Eigen::Matrix<double, 6, Eigen::Dynamic> J(6, columns);
  const bool done = kinematics->calculate_jacobian(vector(q, n), link, J);
  write(J, out);
  return done;
}
int kinematics_inverse(const double * q, int n, const char * link, int rows, double * out)
{
  Eigen::Matrix<double, Eigen::Dynamic, 6> inverse(rows, 6);
  const bool done = kinematics->calculate_jacobian_inverse(vector(q, n), link, inverse);
  write(inverse, out);
  return done;
}
int kinematics_to_cartesian(const double * q, const double * delta, int n, const char * link, double * out)
{
  kinematics_interface::Vector6d found;
  const bool done = kinematics->convert_joint_deltas_to_cartesian_deltas(vector(q, n), vector(delta, n), link, found);
  write(found, out);
  return done;
}
int kinematics_to_joints(const double * q, const double * delta, int n, const char * link, double * out)
{
  Eigen::VectorXd found(n);
  const bool done = kinematics->convert_cartesian_deltas_to_joint_deltas(vector(q, n), vector(delta, 6), link, found);
  write(found, out);
  return done;
}
int kinematics_difference(const double * a, const double * b, double dt, double * out)
{
  Eigen::Matrix<double, 7, 1> x_a = vector(a, 7), x_b = vector(b, 7);
  kinematics_interface::Vector6d found;
  const bool done = kinematics->calculate_frame_difference(x_a, x_b, dt, found);
  write(found, out);
  return done;
}

int dynamics_inertia(const double * q, int n, double * out)
{
  Eigen::MatrixXd found(n, n);
  const bool done = static_cast<Dynamics &>(*kinematics).calculate_inertia(vector(q, n), found);
  write(found, out);
  return done;
}
int dynamics_coriolis(const double * q, const double * qd, int n, double * out)
{
  Eigen::VectorXd found(n);
  const bool done = static_cast<Dynamics &>(*kinematics).calculate_coriolis(vector(q, n), vector(qd, n), found);
  write(found, out);
  return done;
}
int dynamics_gravity(const double * q, int n, double * out)
{
  Eigen::VectorXd found(n);
  const bool done = static_cast<Dynamics &>(*kinematics).calculate_gravity(vector(q, n), found);
  write(found, out);
  return done;
}
int dynamics_jacobian_derivative(const double * q, const double * qd, int n, const char * link, double * out)
{
  Eigen::Matrix<double, 6, Eigen::Dynamic> found(6, n);
  const bool done =
    static_cast<Dynamics &>(*kinematics).calculate_jacobian_derivative(vector(q, n), vector(qd, n), link, found);
  write(found, out);
  return done;
}

}
