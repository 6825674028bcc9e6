// data/ makes batches of a source's samples. Reading values from HDF5 files is the task of arrays/.
//
// What other folders use:
// - the start of a program: register_data_services(). A run: make_session().
// - open_data() opens what an experiment's [data] says (opened_data.hpp).
// - divide() makes the splits (split.hpp); find_statistics() and Normalizer standardise (normalizer.hpp);
//   choose_order() decides data.shuffle (order.hpp).
// - Loader delivers batches (loader.hpp), in an Order (order.hpp), in memory of slots (slots.hpp).
// - synthesise_missing() (synth.hpp), use_normalized_copies() (normalized_copies.hpp), and the lines that report on
//   all this (data_report.hpp).
// All other headers are for data/ alone.
#pragma once

#include <memory>

#include "config/experiment.hpp"
#include "headroom/abi.h"
#include "plugins/session.hpp"

namespace headroom {

// Registers headroom.files/1, cache/1 and the services of arrays/ with the host. Call it before the first source is
// opened. [control]
void register_data_services();

// What a run with this [data] section shares with its plugins: its arrays and its cache, with their limits.
// data.cache_policy is set later, once the source is known.
std::shared_ptr<Session> make_session(const DataSection& data);

// The table of headroom.files/1: plain files and folders for plugins. [any]
const hr_files& files_service();

}  // namespace headroom
