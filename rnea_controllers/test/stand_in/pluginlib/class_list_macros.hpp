// Stand-in for pluginlib: exported classes are found by their name.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

namespace pluginlib
{
template<class Base>
std::map<std::string, std::function<std::shared_ptr<Base>()>> & exported()
{
  static std::map<std::string, std::function<std::shared_ptr<Base>()>> makers;
  return makers;
}

template<class Class, class Base>
bool export_class(const char * name)
{
  exported<Base>()[name] = []() {return std::make_shared<Class>();};
  return true;
}
}  // namespace pluginlib

#define PLUGINLIB_EXPORT_NAME(line) exported_class_##line
#define PLUGINLIB_EXPORT_LINE(Class, Base, line) \
  static const bool PLUGINLIB_EXPORT_NAME(line) = pluginlib::export_class<Class, Base>(#Class);
#define PLUGINLIB_EXPORT_CLASS(Class, Base) PLUGINLIB_EXPORT_LINE(Class, Base, __LINE__)
