// Stand-in for rclcpp loggers: the lines are kept, so that tests can read them.
#pragma once

#include <cstdarg>
#include <cstdio>
#include <string>
#include <vector>

namespace rclcpp
{

class Logger
{
public:
  explicit Logger(const std::string & name)
  : name_(name) {}
  const char * get_name() const {return name_.c_str();}
  Logger get_child(const std::string & suffix) const {return Logger(name_ + "." + suffix);}

private:
  std::string name_;
};

inline Logger get_logger(const std::string & name) {return Logger(name);}

// Lines that were logged: "LEVEL name: text".
inline std::vector<std::string> & log_lines()
{
  static std::vector<std::string> lines;
  return lines;
}

__attribute__((format(printf, 3, 4)))
inline void log_line(const char * level, const Logger & logger, const char * format, ...)
{
  char text[4096];
  va_list values;
  va_start(values, format);
  std::vsnprintf(text, sizeof(text), format, values);
  va_end(values);
  log_lines().push_back(std::string(level) + " " + logger.get_name() + ": " + text);
}

}  // namespace rclcpp

#define RCLCPP_DEBUG(logger, ...) rclcpp::log_line("DEBUG", logger, __VA_ARGS__)
#define RCLCPP_INFO(logger, ...) rclcpp::log_line("INFO", logger, __VA_ARGS__)
#define RCLCPP_WARN(logger, ...) rclcpp::log_line("WARN", logger, __VA_ARGS__)
#define RCLCPP_ERROR(logger, ...) rclcpp::log_line("ERROR", logger, __VA_ARGS__)
#define RCLCPP_FATAL(logger, ...) rclcpp::log_line("FATAL", logger, __VA_ARGS__)
