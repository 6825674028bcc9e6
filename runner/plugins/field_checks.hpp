// Checks a field that a plugin describes.
#pragma once

#include <string>

#include "headroom/abi.h"

namespace headroom {

// What is wrong with field `i`, as the rest of a sentence: "its field 2 has no name". "" where nothing is. Trusts
// nothing in it: its shape is checked before it is read.
std::string flaw_of_field(const hr_field& field, uint32_t i);

}  // namespace headroom
