#include "train/rescue_record.hpp"

#include "config/rescue.hpp"

namespace headroom {

namespace {

bool keeps(const Setup& setup, size_t rung) {
  return keeps_mathematics(*setup.experiment->rescue, rung, (setup.model->capabilities() & HR_COUPLES_SAMPLES) != 0);
}

size_t taken(const Setup& setup) {
  const auto& rescue = setup.experiment->rescue;
  return rescue ? static_cast<size_t>(rescue->taken) : 0;
}

}  // namespace

std::vector<std::string> rescue_lines(const Setup& setup) {
  std::vector<std::string> lines;
  for (size_t i = 0; i < taken(setup); ++i) {
    const auto& rungs = setup.experiment->rescue->rungs;
    lines.push_back("rescue: rung " + std::to_string(i + 1) + " of " + std::to_string(rungs.size()) + " is taken, " +
                    rung_text(rungs[i]) +
                    (keeps(setup, i) ? ": the same mathematics" : ": this changes the mathematics"));
  }
  return lines;
}

nlohmann::json rescue_json(const Setup& setup) {
  const auto& rescue = setup.experiment->rescue;
  if (!rescue) return nullptr;
  bool all_keep = true;
  nlohmann::json list = nlohmann::json::array();
  for (size_t i = 0; i < taken(setup); ++i) {
    list.push_back({{"set", rung_text(rescue->rungs[i])}, {"keeps_mathematics", keeps(setup, i)}});
    all_keep = all_keep && keeps(setup, i);
  }
  return {{"rungs", rescue->rungs.size()}, {"keeps_mathematics", all_keep}, {"taken", list}};
}

}  // namespace headroom
