// Samples of the validation split with what the model makes of them: series and pictures, early and late in training.
#pragma once

#include <filesystem>
#include <string>

namespace headroom {

// Of examples.json; "" where there is none, or nothing in it can be drawn.
std::string examples_html(const std::filesystem::path& run);

}  // namespace headroom
