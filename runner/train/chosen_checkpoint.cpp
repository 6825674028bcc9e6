#include "train/chosen_checkpoint.hpp"

#include "error.hpp"
#include "record/checkpoint.hpp"

namespace headroom {

std::filesystem::path chosen_checkpoint(const std::filesystem::path& run, const std::string& word,
                                        const std::string& component) {
  if (word != "best" && word != "last") return word;
  const Checkpoints checkpoints(run / "checkpoints");
  const auto found = word == "best" ? checkpoints.best() : checkpoints.last();
  if (!found) throw Error(Exit::bad_input, component, run.string() + " has no '" + word + "' checkpoint yet");
  return *found;
}

}  // namespace headroom
