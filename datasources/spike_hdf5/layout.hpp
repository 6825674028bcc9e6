// Where the sequences of a folder lie: in Headroom's own layout, in one of two public ones, or streams with a picture
// each.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "sequence.hpp"

namespace spike_hdf5 {

enum class Layout { hdf5, spk_gopro, s_sdm, pairs };

// One sequence: an HDF5 file, folders, or a stream and its picture.
struct Place {
  std::string name;
  std::filesystem::path path;  // what users know it by: the file, the folder of blurred frames, the stream
  std::filesystem::path sharp = {}, spikes = {};  // folders; of a stream the picture alone
};

struct SplitPlaces {
  std::string name;  // "train", "val", "test"; or "all"
  std::vector<Place> sequences;
};

// `name`: a layout's, or "auto". HR_NOT_FOUND where none is recognised.
Layout layout_of(const std::string& name, const std::filesystem::path& path);

// What the layout's camera is, where options leave it open; 0x0: what the images are.
Size spike_size_of(Layout layout);

// In byte order, streams in the order of their numbers; throws where a split has none.
std::vector<SplitPlaces> find_sequences(const sdk::Host& host, Layout layout, const std::filesystem::path& path);

// The sequence at `path`: an HDF5 file, a stream, or the folder of one in a public layout. HR_DATA_CORRUPT where it is
// none of them.
Place sequence_at(const std::filesystem::path& path);

// Whether there are sharp frames to it.
bool has_sharp(const sdk::Host& host, const Place& place);

std::unique_ptr<Sequence> open_sequence(const sdk::Host& host, const Place& place, const Wanted& wanted);

}  // namespace spike_hdf5
