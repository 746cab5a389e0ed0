// What a controller does with the library, cycle by cycle. In ros2_control, `Feedforward` is a member of your
// controller_interface::ControllerInterface: on_configure() sets the payload, update() calls `update` with the motion that is
// wanted, all its derivatives, and writes the torques to the command interfaces. A NaN that goes in comes out: state interfaces
// are NaN until their hardware is read. Nothing in the class allocates, waits or throws.
#include <cstdio>

#include "$name/$name.hpp"

struct Motion {
$declared
};

class Feedforward {
public:
    $name::Robot robot;

    auto update(const Motion &now) const noexcept { return robot.$first($given); }
};

int main()
{
    Feedforward controller;
    Motion now;
$start$payload    for (int cycle = 0; cycle < 3; ++cycle) {
        const auto found = controller.update(now);
        std::printf("cycle %d\n", cycle);
        for (std::size_t k = 0; k < $name::Robot::joints; ++k)
            std::printf("  %-24s tau %12.6f   tau_rate %12.6f\n", $name::Robot::joint_name(k), found.tau[k], found.tau_rate[k]);
    }
    return 0;
}
