// memory.recompute: which calls of the model are computed again in backward, in place of keeping what they computed.
// "auto" begins with none and goes on, kind by kind, where nothing smaller than the micro-batch exists.
#pragma once

#include <string>
#include <vector>

#include "plugins/torch_model.hpp"

namespace headroom {

// Error(bad_input) where memory.recompute names what the model does not offer.
void check_recompute(const std::vector<std::string>& wanted, const Library& model);

// Whether memory.recompute leaves the choice to the runner.
bool chooses_recompute(const std::vector<std::string>& wanted);

// ", recomputing attention, mlp"; "" for none.
std::string recompute_text(const std::vector<std::string>& kinds);

// [control]
class Recompute {
 public:
  // Tells the model at once, and whenever it changes. `wanted`: memory.recompute.
  Recompute(Model& model, const std::vector<std::string>& wanted);

  const std::vector<std::string>& kinds() const { return kinds_; }

  // The next kind as well, from the next step on; its name. "": all of them are, or the file says which.
  std::string add();

  // Of a plan, or of a resumed run; without effect where the file says which.
  void restore(const std::vector<std::string>& kinds);

 private:
  Model& model_;
  bool chooses_;
  std::vector<std::string> kinds_;
};

}  // namespace headroom
