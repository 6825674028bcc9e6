// datasources/hdf5/: any HDF5 files, described in the experiment file. This is its front door; settings.hpp has the
// options, sequence.hpp what a file holds, field.hpp how values come into a sample, sampling.hpp the arithmetic,
// reader.hpp the reading.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "headroom/datasource.hpp"
#include "reader.hpp"

namespace hdf5_source {

class Source {
 public:
  static sdk::OptionList options() { return option_list(); }

  // Reads shapes, types and attributes of every sequence once.
  Source(const sdk::Host& host, const sdk::Options& options);
  ~Source();
  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;

  std::vector<sdk::Field> fields() const { return contents_.outputs; }
  std::vector<std::string> splits() const;
  uint64_t length(uint32_t split) const;
  std::vector<sdk::Group> groups(uint32_t split) const { return contents_.splits.at(split).groups; }
  std::vector<std::filesystem::path> files() const { return files_; }
  std::vector<std::string> class_names(uint32_t field) const {
    return field < contents_.fields.size() ? contents_.fields[field].finding.classes : std::vector<std::string>();
  }
  std::optional<sdk::Position> position(uint32_t field, uint32_t split, uint64_t index) const;
  bool augments() const {
    const Settings& settings = contents_.settings;
    return settings.sampling == Sampling::one_per_group || (settings.jitter && settings.stride > 1) ||
           !settings.crop.empty();
  }

  Reader make_reader() const { return Reader(host_, contents_); }

 private:
  void find_sequences();
  void add_sequence(const std::filesystem::path& file, const std::string& group, const std::string& number);
  void take_layout(const Sequence& sequence, const std::vector<Finding>& findings);
  std::size_t dataset_number(const std::string& dataset);
  void share_reads();
  void account_strings();
  void require_one_crop();
  void add_splits();

  sdk::Host host_;
  Contents contents_;
  std::vector<std::filesystem::path> files_;
  int64_t string_bytes_ = 0;  // on the ledger
};

}  // namespace hdf5_source
