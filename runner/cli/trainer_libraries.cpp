#include "cli/trainer_libraries.hpp"

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "error.hpp"
#include "memory/tool_output.hpp"

namespace headroom {

namespace {

constexpr size_t most_named = 3;

// The loader lists "\tlibcudart.so.13 => not found", one for each library that asks for it.
std::vector<std::string> missing_libraries(const std::filesystem::path& program) {
  constexpr std::string_view not_found = " => not found";
  std::vector<std::string> missing;
  try {
    // Instead of starting the program, the loader lists what it would load: ld.so(8).
    ToolOutput loader({program.string()}, "libraries", "", {"LD_TRACE_LOADED_OBJECTS=1"});
    while (const auto line = loader.line()) {
      if (!line->ends_with(not_found)) continue;
      const size_t begin = std::min(line->find_first_not_of('\t'), line->size() - not_found.size());
      std::string name = line->substr(begin, line->size() - not_found.size() - begin);
      if (std::ranges::find(missing, name) == missing.end()) missing.push_back(std::move(name));
    }
  } catch (const Error&) {  // whoever starts it says why it cannot be started
  }
  return missing;
}

bool is_torch(std::string_view name) { return name.starts_with("libtorch") || name.starts_with("libc10"); }

// libcudart, libcublas, libcudnn and so on; libnvrtc, libnvJitLink; libnccl.
bool is_nvidia(std::string_view name) {
  return (name.starts_with("libcu") && !name.starts_with("libcurl")) || name.starts_with("libnv") ||
         name.starts_with("libnccl");
}

std::string advice_for(const std::vector<std::string>& missing) {
  if (std::ranges::any_of(missing, is_torch))
    return "LibTorch is not where Headroom was built with it: put it back, or build Headroom again";
  if (std::ranges::any_of(missing, is_nvidia))
    return "LibTorch's CUDA build needs NVIDIA's libraries, on a machine without a GPU too: let pip install torch with "
           "what it depends on, or name their folders in LD_LIBRARY_PATH, or build Headroom with LibTorch's CPU build";
  return "install what is missing, or build Headroom again";
}

}  // namespace

void require_libraries(const std::filesystem::path& program) {
  const std::vector<std::string> missing = missing_libraries(program);
  if (missing.empty()) return;
  std::string names;
  for (size_t i = 0; i < std::min(missing.size(), most_named); ++i) names += (i > 0 ? ", " : "") + missing[i];
  if (missing.size() > most_named) names += " and " + std::to_string(missing.size() - most_named) + " more";
  throw Error(Exit::bad_input, "libraries",
              program.filename().string() + " cannot start without " + names +
                  ", which the dynamic loader does not find: " + advice_for(missing));
}

}  // namespace headroom
