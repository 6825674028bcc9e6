// data/: from a source's samples to batches in memory. Front doors: register_data_services() gives plugins files and
// the cache, divide() makes the splits (split.hpp), Order says which sample comes when (order.hpp), Loader delivers
// batches (loader.hpp), Normalizer standardises them (normalizer.hpp). How values come out of HDF5 files is arrays/'s.
#pragma once

namespace headroom {

// [control] Registers headroom.files/1 and cache/1 with the host, and what register_array_services() does. Before the
// first source is opened.
void register_data_services();

}  // namespace headroom
