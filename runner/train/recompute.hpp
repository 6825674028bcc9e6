// memory.recompute: activation checkpointing. Calls of the chosen kinds are computed again in backward instead of
// keeping their intermediate results. "auto" begins with no kind, and adds one at a time when memory runs out and the
// micro-batch cannot get smaller.
#pragma once

#include <string>
#include <vector>

#include "plugins/torch_model.hpp"

namespace headroom {

// Error(bad_input) where memory.recompute names a kind that the model does not offer.
void check_recompute(const std::vector<std::string>& wanted, const Library& model);

// Whether memory.recompute leaves the choice to the runner.
bool chooses_recompute(const std::vector<std::string>& wanted);

// ", recomputing attention, mlp"; "" for none.
std::string recompute_text(const std::vector<std::string>& kinds);

// [control]
class Recompute {
 public:
  // Passes the kinds to the model, now and whenever they change. `wanted`: memory.recompute.
  Recompute(Model& model, const std::vector<std::string>& wanted);

  const std::vector<std::string>& kinds() const { return kinds_; }

  // Adds the next kind, from the next step on, and returns its name. "": all kinds are in use, or memory.recompute
  // fixes them.
  std::string add();

  // Takes the kinds of a plan or of a resumed run. Does nothing where memory.recompute fixes them.
  void restore(const std::vector<std::string>& kinds);

 private:
  Model& model_;
  bool chooses_;
  std::vector<std::string> kinds_;
};

}  // namespace headroom
