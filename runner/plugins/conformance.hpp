// Is a library a good plugin? The checks behind `headroom plugins check PATH`, for authors: beyond what loading
// refuses, they look at what will hurt later.
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

// [control] Runs every check that the earlier ones leave possible. Loads the library, and so runs it: a plugin that
// crashes takes the process with it. Never throws for what the plugin does.
std::vector<CheckResult> check_plugin(const std::filesystem::path& path);

}  // namespace headroom
