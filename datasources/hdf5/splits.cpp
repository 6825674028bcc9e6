#include "splits.hpp"

#include <algorithm>

#include "glob.hpp"

namespace hdf5_source {

namespace {

// A mask names groups by their last part ("demo_0") or by their path. Reads each file's once.
class Masks {
 public:
  Masks(const sdk::Host& host, const std::string& dataset) : host_(host), dataset_(dataset) {}

  bool take(const Sequence& sequence) {
    if (sequence.file != file_) read(sequence.file);
    const std::string last = sequence.group.substr(sequence.group.find_last_of('/') + 1);
    return find(last) || find(sequence.group) || (!sequence.number.empty() && find(sequence.number));
  }
  // Names that no group has.
  std::vector<std::string> left() {
    read({});
    return left_;
  }

 private:
  bool find(const std::string& name) { return names_.contains(name) && (found_.insert(name), true); }
  void read(const std::filesystem::path& file) {
    for (const std::string& name : names_) {
      if (!found_.contains(name)) left_.push_back("'" + name + "' of " + file_.string());
    }
    names_.clear();
    found_.clear();
    file_ = file;
    if (file.empty()) return;
    for (const std::string& name : host_.strings(file, dataset_)) names_.insert(name);
  }

  sdk::Host host_;
  std::string dataset_;
  std::filesystem::path file_;
  std::set<std::string> names_, found_;
  std::vector<std::string> left_;
};

bool matches_any(const Settings& settings, const SplitSettings& split, const Sequence& sequence) {
  return std::ranges::any_of(
      split.files, [&](const std::string& pattern) { return matches_below(settings.path, pattern, sequence.file); });
}

}  // namespace

std::vector<SplitMembers> divide(const sdk::Host& host, const Settings& settings,
                                 const std::vector<Sequence>& sequences) {
  std::vector<SplitMembers> result;
  // One file, as `headroom predict` opens it, is below no folder whose files could be told apart.
  const bool one_file = sequences.front().file == settings.path;
  const auto by_files = [](const SplitSettings& split) { return split.mask.empty(); };
  if (settings.splits.empty() || (one_file && std::ranges::all_of(settings.splits, by_files))) {
    SplitMembers& all = result.emplace_back(SplitMembers{"all", {}});
    for (uint32_t i = 0; i < sequences.size(); ++i) all.sequences.push_back(i);
    return result;
  }
  std::vector<std::string> taken_by(sequences.size());
  for (const SplitSettings& split : settings.splits) {
    SplitMembers& members = result.emplace_back(SplitMembers{split.name, {}});
    Masks masks(host, split.mask);
    for (uint32_t i = 0; i < sequences.size(); ++i) {
      const bool taken = split.mask.empty() ? matches_any(settings, split, sequences[i]) : masks.take(sequences[i]);
      if (!taken) continue;
      if (!taken_by[i].empty()) {
        sdk::invalid(sequences[i].name(settings.path) + " is in the splits '" + taken_by[i] + "' and '" + split.name +
                     "'; a sequence belongs to one");
      }
      taken_by[i] = split.name;
      members.sequences.push_back(i);
    }
    const std::vector<std::string> unknown = split.mask.empty() ? std::vector<std::string>{} : masks.left();
    if (!unknown.empty()) {
      sdk::invalid("split '" + split.name + "': " + split.mask + " names " + std::to_string(unknown.size()) +
                   " groups that groups = \"" + settings.groups + "\" does not find, first " + unknown.front());
    }
    if (members.sequences.empty())
      sdk::invalid("split '" + split.name + "' takes none of the " + std::to_string(sequences.size()) +
                   " sequences of " + settings.path.string());
  }
  const auto left = std::ranges::count(taken_by, "");
  if (left > 0) {
    host.warn(std::to_string(left) + " of " + std::to_string(sequences.size()) + " sequences of " +
              settings.path.string() + " are in no split: left out");
  }
  return result;
}

}  // namespace hdf5_source
