#include "ranks/agreement.hpp"

#include <nlohmann/json.hpp>
#include <sstream>

#include "error.hpp"

namespace headroom {

namespace {

struct Difference {
  std::string first, other;
};

std::string shown(const std::string& line) { return line.empty() ? "nothing" : line; }

Difference first_difference(const std::string& first, const std::string& other) {
  std::istringstream lines(first), other_lines(other);
  for (std::string line, other_line;;) {
    const bool ended = !std::getline(lines, line), other_ended = !std::getline(other_lines, other_line);
    if (ended) line.clear();
    if (other_ended) other_line.clear();
    if (line != other_line || (ended && other_ended)) return {shown(line), shown(other_line)};
  }
}

}  // namespace

void require_agreement(RankGroup& group, const std::vector<Fact>& facts) {
  if (group.ranks().comes_back) return;
  nlohmann::json own = nlohmann::json::array();
  for (const Fact& fact : facts) own.push_back(fact.value);
  std::vector<nlohmann::json> all;
  for (const std::string& text : group.gather(own.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace)))
    all.push_back(nlohmann::json::parse(text));
  for (size_t i = 0; i < facts.size(); ++i) {
    for (size_t rank = 1; rank < all.size(); ++rank) {
      if (all[rank].at(i) == all[0].at(i)) continue;
      const int number = static_cast<int>(rank);
      const Difference difference =
          first_difference(all[0].at(i).get<std::string>(), all[rank].at(i).get<std::string>());
      group.leave();
      throw Error(Exit::bad_input, "ranks",
                  facts[i].name + " of rank " + std::to_string(number) + " on host " + group.host_of(number) +
                      " differs: it has " + difference.other + ", and rank 0 on host " + group.host_of(0) + " has " +
                      difference.first + ": all processes of a run need the same");
    }
  }
}

}  // namespace headroom
