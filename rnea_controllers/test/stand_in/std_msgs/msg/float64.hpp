// Stand-in.
#pragma once

namespace std_msgs::msg
{
struct Float64
{
  double data = 0.0;
};
}  // namespace std_msgs::msg
