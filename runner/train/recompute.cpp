#include "train/recompute.hpp"

#include <algorithm>

#include "error.hpp"

namespace headroom {

void check_recompute(const std::vector<std::string>& wanted, const Library& model) {
  if (chooses_recompute(wanted)) return;
  const std::vector<std::string> offered = model.recompute_kinds();
  for (const std::string& kind : wanted) {
    if (std::ranges::count(offered, kind) > 0) continue;
    std::string names;
    for (const std::string& name : offered) names += (names.empty() ? "\"" : ", \"") + name + "\"";
    throw Error(Exit::bad_input, model.id(),
                "memory.recompute names \"" + kind + "\", but the model " +
                    (names.empty() ? "can recompute nothing: leave the key out" : "can recompute only " + names));
  }
}

bool chooses_recompute(const std::vector<std::string>& wanted) { return wanted == std::vector<std::string>{"auto"}; }

std::string recompute_text(const std::vector<std::string>& kinds) {
  std::string text;
  for (const std::string& kind : kinds) text += (text.empty() ? ", recomputing " : ", ") + kind;
  return text;
}

Recompute::Recompute(Model& model, const std::vector<std::string>& wanted)
    : model_(model), chooses_(chooses_recompute(wanted)) {
  if (!chooses_) kinds_ = wanted;
  model_.recompute(kinds_);
}

std::string Recompute::add() {
  const std::vector<std::string>& all = model_.recompute_kinds();
  if (!chooses_ || kinds_.size() == all.size()) return "";
  // kinds_ is always the first few of all: plans and checkpoints keep the order.
  kinds_.push_back(all[kinds_.size()]);
  model_.recompute(kinds_);
  return kinds_.back();
}

void Recompute::restore(const std::vector<std::string>& kinds) {
  if (!chooses_) return;
  kinds_ = kinds;
  model_.recompute(kinds_);
}

}  // namespace headroom
