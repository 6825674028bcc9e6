// The identity of a run: what changes its mathematics, as named entries, and nothing that only costs memory or time.
// The table of keys says which key stands in which entry. Runs of one identity train alike, up to rounding; a resumed
// run is compared entry by entry.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "config/experiment.hpp"

namespace headroom {

// {"optimizer": ["adamw", 0.001, ...], "seed": 0, ...}. Entries that a run makes of what it loaded ("model", "content",
// "shuffle", ...) come from `made`, which wins over the experiment's own value; one that is null is left out.
// Identities are kept on disk: another form of an entry is another identity for every run there is.
nlohmann::json identity_entries(const Experiment& experiment, const nlohmann::json& made);

// The keys behind an entry, one for each of its elements, as a sentence names them: "train.optimizer.lr". Of an entry
// that is not known: its name.
std::vector<std::string> keys_of_entry(std::string_view entry);

}  // namespace headroom
