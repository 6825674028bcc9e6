// datasources/emg_hdf5/: EMG recordings in the emg2pose layout as windows of EMG, joint angles and their validity. This
// is its front door; windows.hpp has the arithmetic, recording.hpp the files, splits.hpp metadata.csv, reader.hpp the
// reading, synth.hpp made data.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "headroom/datasource.hpp"
#include "reader.hpp"
#include "recording.hpp"
#include "splits.hpp"
#include "windows.hpp"

namespace emg_hdf5 {

namespace sdk = headroom::sdk;

class EmgSource {
 public:
  static sdk::OptionList options();

  // Opens every recording once for its shape and attributes; with skip_ik_failures also reads its joint angles, block
  // by block.
  EmgSource(const sdk::Host& host, const sdk::Options& options);

  std::vector<sdk::Field> fields() const;
  std::vector<std::string> splits() const;
  uint64_t length(uint32_t split) const;
  std::vector<sdk::Group> groups(uint32_t split) const;  // the recordings, or their parts, that have windows
  std::vector<std::filesystem::path> files() const;
  bool augments() const;
  std::optional<sdk::Position> position(uint32_t field, uint32_t split, uint64_t index) const;
  std::vector<sdk::Origin> origins(uint32_t field) const;

  Reader make_reader() const { return Reader(host_, selection_); }

  static sdk::OptionList synth_options();
  static void synthesise(const sdk::Host& host, const sdk::Options& options, const std::filesystem::path& folder);

 private:
  void add_split(const SplitFiles& files);
  void add_windows(Selection::Split& split);
  std::vector<Block> blocks_of(const Recording& recording) const;
  [[noreturn]] void throw_no_window() const;

  sdk::Host host_;
  Selection selection_;
  uint64_t parts_;
  bool skip_ik_failures_;
  std::filesystem::path path_;
  std::optional<std::filesystem::path> metadata_;  // that divides the recordings
  uint64_t longest_block_ = 0;
};

}  // namespace emg_hdf5
