// The identity of a run: all that changes its mathematics, as named entries, and nothing that only costs memory or
// time. The table of keys says which entry a key belongs to. Runs with one identity train alike, up to rounding; a
// resumed run is compared entry by entry.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "config/experiment.hpp"

namespace headroom {

// {"optimizer": ["adamw", 0.001, ...], "seed": 0, ...}. `made` has the entries that a run computes from what it loaded
// ("model", "content", "shuffle", ...); they win over the experiment's own values, and a null removes an entry.
// Identities are stored on disk: changing the form of an entry changes the identity of every existing run.
nlohmann::json identity_entries(const Experiment& experiment, const nlohmann::json& made);

// The keys of an entry, one for each of its elements, for sentences: "train.optimizer.lr". For an unknown entry: its
// name.
std::vector<std::string> keys_of_entry(std::string_view entry);

}  // namespace headroom
