#include "source.hpp"

#include <algorithm>

#include "channels.hpp"
#include "glob.hpp"
#include "splits.hpp"

namespace hdf5_source {

namespace {

std::vector<std::filesystem::path> files_of(const sdk::Host& host, const Settings& settings) {
  std::error_code unknown;
  if (!std::filesystem::is_directory(settings.path, unknown)) {
    if (std::filesystem::exists(settings.path, unknown)) return {settings.path};
    const bool pattern = settings.path.string().find_first_of("*?") != std::string::npos;
    throw sdk::Error(HR_NOT_FOUND, settings.path.string() + " does not exist" +
                                       (pattern ? "; name the folder as path and give patterns as files = [\"*.hdf5\"]"
                                                : "; path is a folder of HDF5 files, or one file"));
  }
  auto files = find_files(host, settings.path, settings.files);
  if (files.empty())
    throw sdk::Error(HR_NOT_FOUND, "no file in " + settings.path.string() + " matches " + sdk::listing(settings.files));
  return files;
}

}  // namespace

Source::Source(const sdk::Host& host, const sdk::Options& options) : host_(host) {
  contents_.settings = read_settings(options);
  files_ = files_of(host, contents_.settings);
  find_sequences();
  share_reads();
  require_one_crop();
  add_splits();
  account_strings();
}

Source::~Source() {
  if (string_bytes_ > 0) host_.account("strings", -string_bytes_);
}

void Source::find_sequences() {
  const Settings& settings = contents_.settings;
  for (const std::filesystem::path& file : files_) {
    const std::vector<std::string> groups = find_groups(host_, file, settings.groups);
    if (groups.empty()) {
      throw sdk::Error(HR_DATA_CORRUPT, file.string() + " has no group that matches groups = \"" + settings.groups +
                                            "\"; leave the file out, or mend the pattern");
    }
    for (const std::string& group : groups) {
      for (const std::string& number : numbers_of(host_, settings, file, group)) add_sequence(file, group, number);
    }
  }
  const auto uneven = [](const Sequence& sequence) { return !sequence.uneven.empty(); };
  const auto first = std::ranges::find_if(contents_.sequences, uneven);
  if (first == contents_.sequences.end()) return;
  host_.warn(
      std::to_string(std::ranges::count_if(contents_.sequences, uneven)) + " of " +
      std::to_string(contents_.sequences.size()) +
      " sequences have datasets of different lengths, and what the shortest lacks is left out: " + first->uneven);
}

void Source::add_sequence(const std::filesystem::path& file, const std::string& group, const std::string& number) {
  host_.throw_if_cancelled();
  Sequence sequence;
  sequence.file = file;
  sequence.group = group;
  sequence.number = number;
  const std::vector<Finding> findings = examine(host_, contents_.settings, sequence);
  if (contents_.fields.empty()) take_layout(sequence, findings);
  const Sequence& first = contents_.sequences.empty() ? sequence : contents_.sequences.front();
  for (std::size_t f = 0; f < findings.size(); ++f) {
    require_same(contents_.fields[f], first, sequence, findings[f]);
    if (&first != &sequence)
      require_same_channels(host_, first, sequence, contents_.fields[f].settings, contents_.outputs[f].channels);
  }
  contents_.sequences.push_back(std::move(sequence));
}

void Source::account_strings() {
  std::size_t bytes = 0;
  for (const Sequence& sequence : contents_.sequences) {
    for (const auto& labels : sequence.labels) bytes += labels.capacity() * sizeof(int32_t);
    for (const auto& texts : sequence.texts) {
      bytes += texts.capacity() * sizeof(std::string);
      for (const std::string& text : texts) bytes += text.capacity();
    }
  }
  if (bytes == 0) return;
  host_.account("strings", static_cast<int64_t>(bytes));
  string_bytes_ = static_cast<int64_t>(bytes);
}

void Source::take_layout(const Sequence& sequence, const std::vector<Finding>& findings) {
  const Settings& settings = contents_.settings;
  for (std::size_t f = 0; f < findings.size(); ++f)
    contents_.fields.push_back(layout_of(settings, settings.fields[f], sequence, findings[f]));
  for (const FieldLayout& field : contents_.fields) {
    contents_.outputs.push_back(described(settings, field));
    if (field.settings.has_channels()) contents_.outputs.back().channels = channels_of(host_, sequence, field);
  }
  for (FieldLayout& field : contents_.fields) {
    if (field.settings.pad_mask.empty()) continue;
    field.mask_field = static_cast<uint32_t>(contents_.outputs.size());
    contents_.outputs.push_back(described_mask(field));
  }
}

std::size_t Source::dataset_number(const std::string& dataset) {
  const auto name = std::ranges::find(contents_.datasets, dataset);
  const auto number = static_cast<std::size_t>(name - contents_.datasets.begin());
  if (name == contents_.datasets.end()) contents_.datasets.push_back(dataset);
  return number;
}

// Members of one dataset with the same rows come out of one read.
void Source::share_reads() {
  for (uint32_t f = 0; f < contents_.fields.size(); ++f) {
    FieldLayout& field = contents_.fields[f];
    if (!field.is_read()) continue;
    const FieldSettings& own = field.settings;
    field.dataset = dataset_number(own.dataset);
    if (field.has_lengths()) field.lengths = dataset_number(own.lengths);
    const auto same = std::ranges::find_if(contents_.reads, [&](const auto& read) {
      const FieldLayout& other = contents_.fields[read.front()];
      return other.dataset == field.dataset && other.rows_along == field.rows_along && other.crop == field.crop &&
             other.settings.offset == own.offset && other.settings.length == own.length &&
             other.settings.pad == own.pad && other.settings.lengths == own.lengths;
    });
    if (same == contents_.reads.end()) {
      contents_.reads.push_back({f});
    } else {
      same->push_back(f);
    }
  }
}

// One box is drawn for all fields.
void Source::require_one_crop() {
  const Settings& settings = contents_.settings;
  for (std::size_t k = 0; k < settings.crop.size(); ++k) {
    const FieldLayout* first = nullptr;
    for (const FieldLayout& field : contents_.fields) {
      const auto axis = std::ranges::find(field.crop, static_cast<int>(k));
      if (axis == field.crop.end()) continue;
      const uint64_t extent = field.finding.shape[static_cast<std::size_t>(axis - field.crop.begin())];
      if (first == nullptr) {
        first = &field;
        contents_.crop_extents.push_back(extent);
      } else if (contents_.crop_extents.back() != extent) {
        sdk::invalid("axis '" + settings.crop_axes[k] + "' has " + std::to_string(contents_.crop_extents.back()) +
                     " elements in field '" + first->settings.name + "' and " + std::to_string(extent) + " in field '" +
                     field.settings.name + "'; one crop needs them equal");
      }
    }
    if (first == nullptr)
      sdk::invalid("no field has an axis '" + settings.crop_axes[k] + "' to crop; name the axes of fields with axes");
  }
}

void Source::add_splits() {
  const Settings& settings = contents_.settings;
  const Reach reach(settings.fields);
  const std::vector<Stretch> stretches = stretches_of(host_, settings, contents_.sequences);
  uint64_t longest = 0, too_short = 0;
  std::string shortest;
  for (const SplitMembers& members : divide(host_, settings, contents_.sequences, stretches)) {
    Contents::Split split{members.name, SampleTable(settings.sampling, settings.stride), {}};
    for (const Stretch& stretch : members.stretches) {
      const auto name = [&] { return name_of(stretch, contents_.sequences[stretch.sequence], settings.path); };
      longest = std::max(longest, stretch.length());
      const auto starts = reach.starts(stretch.length());
      if (!starts) {
        if (too_short++ == 0) shortest = name() + " with " + std::to_string(stretch.length());
        continue;
      }
      const uint64_t first = split.samples.length(), count = split.samples.add(stretch, *starts);
      // No group at all: each row is its own.
      if (settings.sampling != Sampling::rows) split.groups.push_back({name(), first, count});
    }
    contents_.splits.push_back(std::move(split));
  }
  const std::string needed = std::to_string(reach.rows()) + " rows that a sample needs";
  if (std::ranges::all_of(contents_.splits, [](const auto& split) { return split.samples.length() == 0; })) {
    sdk::invalid("none of the " + std::to_string(stretches.size()) + " sequences of " + settings.path.string() +
                 " has the " + needed + "; the longest has " + std::to_string(longest));
  }
  if (too_short > 0) {
    host_.warn(std::to_string(too_short) + " of " + std::to_string(stretches.size()) + " sequences have not the " +
               needed + ", first " + shortest + ": left out");
  }
}

std::vector<std::string> Source::splits() const {
  std::vector<std::string> names;
  for (const auto& split : contents_.splits) names.push_back(split.name);
  return names;
}

uint64_t Source::length(uint32_t split) const {
  return split < contents_.splits.size() ? contents_.splits[split].samples.length() : 0;
}

std::optional<sdk::Position> Source::position(uint32_t field, uint32_t split, uint64_t index) const {
  // A row that is a sample by itself belongs to no recording; masks are made up, not read.
  if (contents_.settings.sampling == Sampling::rows || field >= contents_.fields.size()) return std::nullopt;
  const FieldLayout& layout = contents_.fields[field];
  // Where its rows do not come first, they lie across the sample.
  if (layout.settings.rows == Rows::all || layout.outer != 1) return std::nullopt;
  const Sample sample = contents_.splits.at(split).samples.at(index);
  return sdk::Position{
      static_cast<int64_t>(sample.start) - static_cast<int64_t>(sample.rows.begin) + layout.settings.offset,
      layout.settings.length, sample.rows.end - sample.rows.begin};
}

}  // namespace hdf5_source
