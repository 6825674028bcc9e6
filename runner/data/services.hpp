// data/: from a source's samples to batches in memory. Front doors: register_data_services() gives plugins files and
// the cache, divide() makes the splits (split.hpp), Order says which sample comes when (order.hpp), Loader delivers
// batches (loader.hpp), Normalizer standardises them (normalizer.hpp). How values come out of HDF5 files is arrays/'s.
#pragma once

#include <memory>

#include "config/experiment.hpp"
#include "headroom/abi.h"
#include "plugins/session.hpp"

namespace headroom {

// [control] Registers headroom.files/1 and cache/1 with the host, and what register_array_services() does. Before the
// first source is opened.
void register_data_services();

// What a run with this [data] shares with its plugins; data.cache_policy is chosen once the source is known.
std::shared_ptr<Session> make_session(const DataSection& data);

// The table of headroom.files/1: plain files and folders for plugins. [any]
const hr_files& files_service();

}  // namespace headroom
