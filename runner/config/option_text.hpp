// The values that a plugin's option may have, in words.
#pragma once

#include <string>

#include "config/options.hpp"
#include "config/sentences.hpp"

namespace headroom {

std::string allowed(const OptionSpec& option);          // "a list of integers of at least 1"
std::string allowed_element(const OptionSpec& option);  // "an integer of at least 1"
Wanted wanted_by(const OptionSpec& option);             // of one element

}  // namespace headroom
