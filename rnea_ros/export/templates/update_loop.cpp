// What a controller does with the library, cycle by cycle. In ros2_control, `Feedforward` is a member of your
// controller_interface::ControllerInterface: on_configure() sets the payload, update() calls `update` with what the state
// interfaces say and writes the torques to the command interfaces. Nothing in it allocates, waits or throws.
#include <cstdio>

#include "$name/$name.hpp"

struct State {
$declared
};

class Feedforward {
public:
    $name::Robot robot;

    auto update(const State &now) const noexcept { return robot.$first($given); }
};

int main()
{
    Feedforward controller;
    State now;
$start$payload    for (int cycle = 0; cycle < 3; ++cycle) {
        const auto found = controller.update(now);
        std::printf("cycle %d\n", cycle);
        for (std::size_t k = 0; k < $name::Robot::joints; ++k)
            std::printf("  %-24s tau %12.6f   tau_rate %12.6f\n", $name::Robot::joint_name(k), found.tau[k], found.tau_rate[k]);
    }
    return 0;
}
