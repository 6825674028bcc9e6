// The checks of `headroom plugins check PATH`, for authors of plugins. Loading refuses what cannot work; these also
// find what works today and fails later.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace headroom {

struct CheckResult {
  enum class Outcome { ok, fail, skip };
  Outcome outcome = Outcome::ok;
  std::string name;      // what was checked
  std::string sentence;  // what is wrong and what to do, or why it was skipped; "" when ok
};

// [control] Runs the checks in order and skips those that an earlier failure makes impossible. It loads and runs the
// plugin: one that crashes ends the process. Exceptions of the plugin become failed checks.
std::vector<CheckResult> check_plugin(const std::filesystem::path& path);

}  // namespace headroom
