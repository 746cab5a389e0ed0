// Stand-in.
#pragma once
#include "controller_interface/chainable_controller_interface.hpp"
