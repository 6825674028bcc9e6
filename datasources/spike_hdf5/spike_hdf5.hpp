// datasources/spike_hdf5/: clips of blurred and sharp frames with the spikes between them, for deblurring. This is its
// front door; layout.hpp has the folders, frame_files.hpp the files in them, sequence.hpp one video, clip.hpp the
// reading of a part of it, kept_frames.hpp what of it stays in memory, upsampling.hpp and voxel_transform.hpp what
// becomes of spike counts, texture.hpp, scene.hpp, camera.hpp and synth.cpp made data, compact.cpp the conversion.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "headroom/datasource.hpp"
#include "headroom/sdk/convert.hpp"
#include "reader.hpp"
#include "recorded_sequence.hpp"

namespace spike_hdf5 {

class SpikeSource {
 public:
  static sdk::OptionList options();

  // Opens every sequence once for its shapes.
  SpikeSource(const sdk::Host& host, const sdk::Options& options);

  std::vector<sdk::Field> fields() const;
  std::vector<std::string> splits() const;
  uint64_t length(uint32_t split) const;
  std::vector<sdk::Group> groups(uint32_t split) const;  // the sequences
  const std::vector<std::filesystem::path>& files() const { return files_; }
  bool augments() const { return selection_.augments(); }

  Reader make_reader() const { return Reader(host_, selection_); }

  // HR_DATA_CORRUPT where it is not one sequence like those of the source; the sharp frames may be missing.
  RecordedSequence open_recording(const std::filesystem::path& path) const;

  static sdk::OptionList synth_options();
  static void synthesise(const sdk::Host& host, const sdk::Options& options, const std::filesystem::path& folder);

  // To the compact form, see compact.cpp.
  static sdk::OptionList convert_options() { return sequence_options(); }
  static std::vector<sdk::Piece> pieces(const sdk::Host& host, const sdk::Options& options,
                                        const std::filesystem::path& path);
  static void convert(const sdk::Host& host, const sdk::Options& options, const std::filesystem::path& path,
                      const std::filesystem::path& piece, const std::filesystem::path& file);

 private:
  void add_sequence(Selection::Split& split, const Place& place);
  void require_usable(const Facts& facts, const std::filesystem::path& file) const;
  static sdk::OptionList sequence_options();  // how a sequence is found and read, for clips as for a conversion
  static Wanted wanted_of(const sdk::Options& options, Layout layout);
  void require_alike(const Facts& facts, const std::filesystem::path& file) const;
  void require_one_size(const Facts& facts, const std::filesystem::path& file) const;

  sdk::Host host_;
  Selection selection_;
  std::vector<std::filesystem::path> files_;
};

}  // namespace spike_hdf5
