// The program that trains.
#pragma once

#include <string>

namespace layline::app {

// `program`, or layline-train beside this program where that is empty. Throws base::InputError when it is not there.
std::string find_trainer(const std::string& program);

}  // namespace layline::app
