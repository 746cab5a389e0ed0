// Stand-in: see class_loader.hpp.
#pragma once

#include "class_loader/class_loader.hpp"

#define PLUGINLIB_EXPORT_CLASS(Derived, Base) CLASS_LOADER_REGISTER_CLASS(Derived, Base)
