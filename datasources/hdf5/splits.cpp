#include "splits.hpp"

#include <algorithm>
#include <tuple>

#include "glob.hpp"
#include "masks.hpp"

namespace hdf5_source {

namespace {

bool matches_any(const Settings& settings, const SplitSettings& split, const Sequence& sequence) {
  return std::ranges::any_of(
      split.files, [&](const std::string& pattern) { return matches_below(settings.path, pattern, sequence.file); });
}

// The rows of the one sequence that there is.
void require_range(const Settings& settings, const SplitSettings& split, const std::vector<Sequence>& sequences) {
  if (sequences.size() > 1) {
    sdk::invalid("split '" + split.name + "' names rows, which are those of one sequence, but " +
                 settings.path.string() + " has " + std::to_string(sequences.size()) + "; name files or a mask");
  }
  if (split.rows->end <= sequences.front().rows) return;
  sdk::invalid("split '" + split.name + "' ends at row " + std::to_string(split.rows->end) + ", but " +
               sequences.front().file.string() + " has " + std::to_string(sequences.front().rows) + " rows");
}

std::vector<RowRange> within(const RowRange& range, const Stretch& stretch) {
  const RowRange shared{std::max(range.begin, stretch.rows.begin), std::min(range.end, stretch.rows.end)};
  if (shared.begin >= shared.end) return {};
  return {shared};
}

bool is_whole(const RowRange& rows, const Stretch& stretch) {
  return rows.begin == stretch.rows.begin && rows.end == stretch.rows.end;
}

// What one split takes.
SplitMembers members_of(const sdk::Host& host, const Settings& settings, const SplitSettings& split,
                        const std::vector<Sequence>& sequences, const std::vector<Stretch>& stretches) {
  const std::unique_ptr<Mask> mask = split.mask.empty() ? nullptr : open_mask(host, split, sequences, stretches);
  if (split.rows) require_range(settings, split, sequences);
  SplitMembers members{split.name};
  for (const Stretch& stretch : stretches) {
    const Sequence& sequence = sequences[stretch.sequence];
    std::vector<RowRange> taken;
    if (mask) {
      taken = mask->take(sequence, stretch);
    } else if (split.rows) {
      taken = within(*split.rows, stretch);
    } else if (matches_any(settings, split, sequence)) {
      taken = {stretch.rows};
    }
    for (const RowRange& rows : taken) {
      if (stretch.episode && !is_whole(rows, stretch)) {
        sdk::invalid("split '" + split.name + "' takes a part of " + episode_text(stretch) + " of " +
                     sequence.file.string() + "; an episode stays whole");
      }
      members.cuts = members.cuts || !is_whole(rows, stretch);
      members.stretches.push_back({stretch.sequence, rows, stretch.episode});
    }
  }
  const std::vector<std::string> unknown = mask ? mask->left() : std::vector<std::string>{};
  if (!unknown.empty()) {
    sdk::invalid("split '" + split.name + "': " + split.mask + " names " + std::to_string(unknown.size()) +
                 " groups that groups = \"" + settings.groups + "\" does not find, first " + unknown.front());
  }
  if (members.stretches.empty())
    sdk::invalid("split '" + split.name + "' takes none of the " + std::to_string(stretches.size()) + " sequences of " +
                 settings.path.string());
  return members;
}

struct Taken {
  Stretch stretch;
  std::size_t split = 0;  // number among `result`
};

std::vector<Taken> in_order(const std::vector<SplitMembers>& splits) {
  std::vector<Taken> all;
  for (std::size_t split = 0; split < splits.size(); ++split) {
    for (const Stretch& stretch : splits[split].stretches) all.push_back({stretch, split});
  }
  std::ranges::sort(
      all, {}, [](const Taken& one) { return std::tuple(one.stretch.sequence, one.stretch.rows.begin, one.split); });
  return all;
}

void require_apart(const Settings& settings, const std::vector<SplitMembers>& splits, const std::vector<Taken>& taken,
                   const std::vector<Sequence>& sequences) {
  const auto shared = std::ranges::adjacent_find(taken, [](const Taken& one, const Taken& next) {
    return one.stretch.sequence == next.stretch.sequence &&
           (one.stretch.rows.begin == next.stretch.rows.begin || next.stretch.rows.begin < one.stretch.rows.end);
  });
  if (shared == taken.end()) return;
  const Taken &one = *shared, &next = *(shared + 1);
  const Sequence& sequence = sequences[one.stretch.sequence];
  const std::string both =
      " is in the splits '" + splits[one.split].name + "' and '" + splits[next.split].name + "'; a ";
  if (is_whole(one.stretch.rows, next.stretch))
    sdk::invalid(name_of(one.stretch, sequence, settings.path) + both + "sequence belongs to one");
  sdk::invalid("row " + std::to_string(next.stretch.rows.begin) + " of " + sequence.name(settings.path) + both +
               "row belongs to one");
}

// Whole sequences are counted as such, pieces by their rows.
void warn_of_rest(const sdk::Host& host, const Settings& settings, const std::vector<Taken>& taken,
                  const std::vector<Stretch>& stretches, bool in_rows) {
  uint64_t all_rows = 0, taken_rows = 0;
  for (const Stretch& stretch : stretches) all_rows += stretch.length();
  for (const Taken& one : taken) taken_rows += one.stretch.length();
  const uint64_t all = in_rows ? all_rows : stretches.size();
  const uint64_t left = all - (in_rows ? taken_rows : taken.size());
  if (left == 0) return;
  host.warn(std::to_string(left) + " of " + std::to_string(all) + (in_rows ? " rows of " : " sequences of ") +
            settings.path.string() + " are in no split: left out");
}

}  // namespace

std::vector<SplitMembers> divide(const sdk::Host& host, const Settings& settings,
                                 const std::vector<Sequence>& sequences, const std::vector<Stretch>& stretches) {
  // One file, as `headroom predict` opens it, is below no folder whose files could be told apart.
  const bool one_file = sequences.front().file == settings.path;
  const auto by_files = [](const SplitSettings& split) { return !split.files.empty(); };
  if (settings.splits.empty() || (one_file && std::ranges::all_of(settings.splits, by_files)))
    return {SplitMembers{"all", stretches}};
  std::vector<SplitMembers> result;
  for (const SplitSettings& split : settings.splits)
    result.push_back(members_of(host, settings, split, sequences, stretches));
  const std::vector<Taken> taken = in_order(result);
  require_apart(settings, result, taken, sequences);
  warn_of_rest(host, settings, taken, stretches, std::ranges::any_of(result, &SplitMembers::cuts));
  return result;
}

}  // namespace hdf5_source
