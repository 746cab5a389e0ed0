// Stand-in for realtime_tools::RealtimeThreadSafeBox.
#pragma once

#include <mutex>
#include <optional>

namespace realtime_tools
{
template<class T, typename mutex_type = std::mutex>
class RealtimeThreadSafeBox
{
public:
  explicit RealtimeThreadSafeBox(const T & init = T{}) : value_(init) {}
  void set(const T & value)
  {
    std::lock_guard<mutex_type> guard(lock_);
    value_ = value;
  }
  [[nodiscard]] std::optional<T> try_get() const
  {
    std::unique_lock<mutex_type> guard(lock_, std::try_to_lock);
    return guard.owns_lock() ? std::optional<T>(value_) : std::nullopt;
  }
  bool try_set(const T & value)
  {
    std::unique_lock<mutex_type> guard(lock_, std::try_to_lock);
    value_ = guard.owns_lock() ? value : value_;
    return guard.owns_lock();
  }

private:
  T value_;
  mutable mutex_type lock_;
};
}  // namespace realtime_tools
