// C functions around a controller and the stand-in headers, for tests by ctypes: what a controller manager does.
#include <cmath>
#include <cstring>

#include "controller_interface/chainable_controller_interface.hpp"
#include "pluginlib/class_list_macros.hpp"
#include "std_msgs/msg/float64.hpp"
#include "trajectory_msgs/msg/joint_trajectory.hpp"

using controller_interface::CallbackReturn;
using Controller = controller_interface::ChainableControllerInterface;

struct Harness
{
  std::shared_ptr<Controller> controller;
  std::vector<hardware_interface::CommandInterface::SharedPtr> commands, references;
  std::vector<hardware_interface::StateInterface::SharedPtr> states, exported;
  std::map<std::string, rclcpp::Parameter> parameters;
  std::int64_t time = 0;
  std::string text;
};

namespace
{
const char * say(Harness & harness, const std::string & text)
{
  harness.text = text;
  return harness.text.c_str();
}

template<class Handle>
std::vector<std::shared_ptr<Handle>> handles(const std::vector<std::string> & names)
{
  std::vector<std::shared_ptr<Handle>> found;
  for (const auto & name : names) {
    const auto cut = name.rfind('/');
    found.push_back(std::make_shared<Handle>(name.substr(0, cut), name.substr(cut + 1)));
  }
  return found;
}

}  // namespace

extern "C" {
Harness * harness_new(const char * plugin, const char * name, unsigned update_rate)
{
  const auto & makers = pluginlib::exported<Controller>();
  const auto found = makers.find(plugin);
  if (found == makers.end()) {
    return nullptr;
  }
  auto * harness = new Harness;
  harness->controller = found->second();
  harness->controller->stand_in_init(name, update_rate);
  return harness;
}
void harness_delete(Harness * harness) { delete harness; }

void harness_text(Harness * harness, const char * name, const char * value)
{
  harness->parameters.insert_or_assign(name, rclcpp::Parameter(name, std::string(value)));
}
void harness_number(Harness * harness, const char * name, double value)
{
  harness->parameters.insert_or_assign(name, rclcpp::Parameter(name, value));
}
void harness_numbers(Harness * harness, const char * name, const double * values, int count)
{
  harness->parameters.insert_or_assign(name, rclcpp::Parameter(name, std::vector<double>(values, values + count)));
}
void harness_texts(Harness * harness, const char * name, const char * const * values, int count)
{
  harness->parameters.insert_or_assign(name, rclcpp::Parameter(name, std::vector<std::string>(values, values + count)));
}
// Give the parameters before on_init as overrides, later as a call of the service set_parameters_atomically; the reason why not.
const char * harness_set(Harness * harness, int before)
{
  const auto node = harness->controller->get_node();
  if (before) {
    node->overrides.swap(harness->parameters);
    return "";
  }
  std::vector<rclcpp::Parameter> given;
  for (const auto & entry : harness->parameters) {
    given.push_back(entry.second);
  }
  harness->parameters.clear();
  const auto result = node->set_parameters_atomically(given);
  return say(*harness, result.successful ? "" : result.reason);
}

int harness_transition(Harness * harness, const char * name)
{
  auto & controller = *harness->controller;
  const rclcpp_lifecycle::State state;
  const std::string word = name;
  CallbackReturn found = CallbackReturn::ERROR;
  if (word == "init") {
    found = controller.on_init();
  } else if (word == "configure") {
    found = controller.on_configure(state);
    if (found == CallbackReturn::SUCCESS) {
      harness->references = controller.export_reference_interfaces();
      harness->exported = controller.stand_in_export_state_interfaces();
      harness->commands = handles<hardware_interface::CommandInterface>(controller.command_interface_configuration().names);
      harness->states = handles<hardware_interface::StateInterface>(controller.state_interface_configuration().names);
    }
  } else if (word == "activate") {
    std::vector<hardware_interface::LoanedCommandInterface> commands;
    std::vector<hardware_interface::LoanedStateInterface> states;
    for (const auto & one : harness->commands) {
      commands.emplace_back(one);
    }
    for (const auto & one : harness->states) {
      states.emplace_back(one);
    }
    controller.assign_interfaces(std::move(commands), std::move(states));
    found = controller.on_activate(state);
  } else if (word == "deactivate") {
    found = controller.on_deactivate(state);
  } else if (word == "cleanup") {
    found = controller.on_cleanup(state);
  } else if (word == "error") {
    found = controller.on_error(state);
  }
  return static_cast<int>(found);
}
void harness_chained(Harness * harness, int chained) { harness->controller->set_chained_mode(chained != 0); }

int harness_count(Harness * harness, const char * kind)
{
  const std::string word = kind;
  return static_cast<int>(
    word == "commands" ? harness->commands.size() : word == "states" ? harness->states.size() :
    word == "references" ? harness->references.size() : harness->exported.size());
}
const char * harness_name(Harness * harness, const char * kind, int k)
{
  const std::string word = kind;
  const auto at = static_cast<std::size_t>(k);
  return word == "commands" ? harness->commands[at]->get_name().c_str() :
         word == "states" ? harness->states[at]->get_name().c_str() :
         word == "references" ? harness->references[at]->get_name().c_str() : harness->exported[at]->get_name().c_str();
}

void harness_write(Harness * harness, const double * states, const double * references, const double * commands)
{
  const auto put = [](const double * values, const auto & handles) {
      for (std::size_t k = 0; values != nullptr && k < handles.size(); ++k) {
        static_cast<void>(handles[k]->set_value(values[k]));
      }
    };
  put(states, harness->states);
  put(references, harness->references);
  put(commands, harness->commands);
}
int harness_update(Harness * harness, double period)
{
  const auto step = rclcpp::Duration::from_seconds(period);
  harness->time += step.nanoseconds();
  harness->controller->get_node()->clock = harness->time;
  return static_cast<int>(harness->controller->update(rclcpp::Time(harness->time), step));
}
void harness_read(Harness * harness, double * commands, double * exported)
{
  for (std::size_t k = 0; k < harness->commands.size(); ++k) {
    commands[k] = harness->commands[k]->get_optional().value_or(NAN);
  }
  for (std::size_t k = 0; k < harness->exported.size(); ++k) {
    exported[k] = harness->exported[k]->get_optional().value_or(NAN);
  }
}
void harness_clock(Harness * harness, std::int64_t nanoseconds)
{
  harness->time = nanoseconds;
  harness->controller->get_node()->clock = nanoseconds;
}
// Publish a JointTrajectory: names, times [s] after the stamp [ns], and points * 3 * joints numbers: q, qd, qdd of each point.
void harness_trajectory(
  Harness * harness, std::int64_t stamp, const char * const * names, int joints, const double * times, const double * values,
  int points)
{
  auto message = std::make_shared<trajectory_msgs::msg::JointTrajectory>();
  message->header.stamp.sec = static_cast<std::int32_t>(stamp / 1000000000);
  message->header.stamp.nanosec = static_cast<std::uint32_t>(stamp % 1000000000);
  message->joint_names.assign(names, names + joints);
  for (int p = 0; p < points; ++p) {
    trajectory_msgs::msg::JointTrajectoryPoint point;
    const double * at = values + 3 * joints * p;
    point.positions.assign(at, at + joints);
    point.velocities.assign(at + joints, at + 2 * joints);
    point.accelerations.assign(at + 2 * joints, at + 3 * joints);
    const auto time = static_cast<std::int64_t>(std::llround(1e9 * times[p]));
    point.time_from_start.sec = static_cast<std::int32_t>(time / 1000000000);
    point.time_from_start.nanosec = static_cast<std::uint32_t>(time % 1000000000);
    message->points.push_back(point);
  }
  const auto alive = harness->controller->get_node()->subscriptions["~/joint_trajectory"].lock();
  std::static_pointer_cast<rclcpp::Subscription<trajectory_msgs::msg::JointTrajectory>>(alive)->callback(message);
}
void harness_override(Harness * harness, double share)
{
  auto message = std::make_shared<std_msgs::msg::Float64>();
  message->data = share;
  const auto alive = harness->controller->get_node()->subscriptions["~/override"].lock();
  std::static_pointer_cast<rclcpp::Subscription<std_msgs::msg::Float64>>(alive)->callback(message);
}
void harness_references(Harness * harness, double * references)
{
  for (std::size_t k = 0; k < harness->references.size(); ++k) {
    references[k] = harness->references[k]->get_optional().value_or(0.0);
  }
}
// Keep a state's handle locked, as another thread would, or free it.
void harness_lock(Harness * harness, int k, int locked)
{
  auto & mutex = harness->states[static_cast<std::size_t>(k)]->mutex;
  locked ? mutex.lock() : mutex.unlock();
}
const char * harness_log(Harness * harness)
{
  for (const auto & timer : harness->controller->get_node()->timers) {
    if (const auto alive = timer.lock()) {
      alive->callback();
    }
  }
  return harness->controller->get_node()->log->c_str();
}
const char * harness_descriptions(Harness * harness)
{
  std::string text;
  for (const auto & entry : harness->controller->get_node()->descriptions) {
    text += entry.first + "\t" + entry.second + "\n";
  }
  return say(*harness, text);
}
}
