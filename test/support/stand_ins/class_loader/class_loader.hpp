// Stand-in for class_loader and pluginlib: a registry of factories by name of class and base class.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>

namespace class_loader
{

template<typename Base>
std::map<std::string, std::unique_ptr<Base>(*)()> & factories()
{
  static std::map<std::string, std::unique_ptr<Base>(*)()> registered;
  return registered;
}

template<typename Derived, typename Base>
int register_class(const std::string & name)
{
  factories<Base>()[name] = [] {return std::unique_ptr<Base>(new Derived);};
  return 0;
}

// Returns a new object, or nothing if no class of this name was registered.
template<typename Base>
std::unique_ptr<Base> create(const std::string & name)
{
  const auto found = factories<Base>().find(name);
  return found == factories<Base>().end() ? nullptr : found->second();
}

}  // namespace class_loader

#define STAND_IN_JOIN_(a, b) a ## b
#define STAND_IN_JOIN(a, b) STAND_IN_JOIN_(a, b)
#define CLASS_LOADER_REGISTER_CLASS(Derived, Base) \
  [[maybe_unused]] static const int STAND_IN_JOIN(registered_, __COUNTER__) = \
    class_loader::register_class<Derived, Base>(#Derived);
