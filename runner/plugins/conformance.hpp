// The checks of `headroom plugins check PATH`, for authors of plugins. Loading refuses what cannot work; these checks
// also find what works today and fails later.
#pragma once

#include <filesystem>
#include <vector>

#include "plugins/check_list.hpp"

namespace headroom {

// [control] Runs the checks in order and skips those that an earlier failure makes impossible. It loads and runs the
// plugin: one that crashes ends the process. Exceptions of the plugin become failed checks.
std::vector<CheckResult> check_plugin(const std::filesystem::path& path);

}  // namespace headroom
