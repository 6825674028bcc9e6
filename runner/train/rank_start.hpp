// How a run of several processes begins: one opens, makes and measures, the others find; and all have to agree.
#pragma once

#include <filesystem>
#include <memory>

#include "record/run_folder.hpp"
#include "train/setup.hpp"

namespace headroom {

// prepare_data(), by rank 0 before the others: it may write data. Error(bad_input) where the ranks do not have the same
// experiment, plugins, data and LibTorch. Without a group it is prepare_data().
RunData prepare_data_of_ranks(const Experiment& experiment, const std::vector<std::filesystem::path>& plugin_dirs,
                              std::shared_ptr<RankGroup> group);

// Error(bad_input) for what several processes cannot train as one would. Does nothing where the run is alone.
void require_divisible(const Setup& setup);

// Error(bad_input) where the ranks do not begin with the same weights. Does nothing where the run is alone.
void require_same_weights(const Setup& setup);

// For the log: who shares the run, and what it does not do for several. Empty where the run is alone.
std::vector<std::string> rank_lines(const Setup& setup, bool resumed);

// Whether this process tells how the run ended: the first, or whoever stands in for it.
bool speaks_for_all(const RunData& data);

// The new folder of a run, which rank 0 makes.
RunFolder make_run_folder(const std::filesystem::path& out, const RunData& data);

// Where this process leaves what only it knows (its black box): the run's folder, or one in it for each other rank. A
// rank's group keeps its lost note there from here on.
std::filesystem::path folder_of_rank(const RunFolder& folder, const RunData& data);

}  // namespace headroom
