#include "ranks/agreement.hpp"

#include <nlohmann/json.hpp>

#include "error.hpp"

namespace headroom {

void require_agreement(RankGroup& group, const std::vector<Fact>& facts) {
  nlohmann::json own = nlohmann::json::array();
  for (const Fact& fact : facts) own.push_back(fact.value);
  std::vector<nlohmann::json> all;
  for (const std::string& text : group.gather(own.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace)))
    all.push_back(nlohmann::json::parse(text));
  for (size_t i = 0; i < facts.size(); ++i) {
    for (size_t rank = 1; rank < all.size(); ++rank) {
      if (all[rank].at(i) == all[0].at(i)) continue;
      const int number = static_cast<int>(rank);
      throw Error(Exit::bad_input, "ranks",
                  facts[i].name + " of rank " + std::to_string(number) + " on host " + group.host_of(number) + " is " +
                      all[rank].at(i).get<std::string>() + ", and " + all[0].at(i).get<std::string>() +
                      " on rank 0 on host " + group.host_of(0) + ": all processes of a run need the same");
    }
  }
}

}  // namespace headroom
