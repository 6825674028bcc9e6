#include "data/split.hpp"

#include <algorithm>
#include <array>
#include <numeric>

#include "headroom/random.h"
#include "memory/readable.hpp"

namespace headroom {

namespace {

constexpr uint64_t split_site = 0x73706C6974;  // "split"

constexpr std::array<const char*, 3> split_names{"train", "val", "test"};

// A Fisher-Yates shuffle by keyed random numbers.
std::vector<uint64_t> shuffled(uint64_t count, uint64_t seed, uint64_t stream) {
  std::vector<uint64_t> order(count);
  std::iota(order.begin(), order.end(), 0);
  const uint64_t key = hr_philox64(seed, split_site, stream);
  // `left` is the site too: each draw has random bits of its own.
  for (uint64_t left = count; left > 1; --left) std::swap(order[left - 1], order[hr_uniform_below(key, left, left)]);
  return order;
}

// Keeps the first `most` of `dealt`, which is in shuffled order, and puts them in the source's order.
Split cut(const char* name, uint32_t source_split, const std::vector<Group>& groups, std::vector<uint64_t> dealt,
          std::optional<int64_t> most) {
  if (most) dealt.resize(std::min<uint64_t>(dealt.size(), static_cast<uint64_t>(std::max<int64_t>(*most, 0))));
  std::sort(dealt.begin(), dealt.end());
  std::vector<Group> chosen;
  for (const uint64_t i : dealt) chosen.push_back(groups[i]);
  return {name, source_split, std::move(chosen)};
}

// Each group goes to the split that lacks the most samples. Then each split without a group takes one from the split
// with the most.
std::array<std::vector<uint64_t>, 3> deal(const std::vector<Group>& groups, const std::array<double, 3>& fractions,
                                          uint64_t seed) {
  double samples = 0;
  for (const Group& group : groups) samples += static_cast<double>(group.count);
  std::array<double, 3> lacking;
  for (size_t i = 0; i < 3; ++i) lacking[i] = fractions[i] * samples;

  std::array<std::vector<uint64_t>, 3> dealt;
  for (const uint64_t group : shuffled(groups.size(), seed, 0)) {
    size_t to = 0;
    for (size_t i = 1; i < 3; ++i) {
      if (fractions[i] > 0 && (fractions[to] <= 0 || lacking[i] > lacking[to])) to = i;
    }
    dealt[to].push_back(group);
    lacking[to] -= static_cast<double>(groups[group].count);
  }
  for (size_t i = 0; i < 3; ++i) {
    if (fractions[i] <= 0 || !dealt[i].empty()) continue;
    // There are as many groups as splits (divide_groups()), so the richest has two at least.
    auto& rich =
        *std::max_element(dealt.begin(), dealt.end(), [](const auto& a, const auto& b) { return a.size() < b.size(); });
    dealt[i].push_back(rich.back());
    rich.pop_back();
  }
  return dealt;
}

Splits divide_groups(const Source& source, const DataSection& data) {
  const SplitFractions wanted = data.split.value_or(SplitFractions{});
  const std::array<double, 3> fractions{wanted.train, wanted.val, wanted.test};
  const std::vector<Group>& groups = source.groups(0);
  const auto splits =
      static_cast<uint64_t>(std::count_if(fractions.begin(), fractions.end(), [](double f) { return f > 0; }));
  if (splits == 0) throw Error(Exit::bad_input, "data", "data.split: every fraction is 0; train needs more than 0");
  if (groups.size() < splits) {
    throw Error(Exit::bad_input, "data",
                "data.split: source '" + source.id() + "' has " + counted(groups.size(), "group") +
                    ", which cannot fill " + counted(splits, "split") +
                    ": a group (a recording, a clip) never crosses splits. Add recordings, or give fewer " +
                    "splits, as in split = { train = 1.0, val = 0.0, test = 0.0 }");
  }
  const auto dealt = deal(groups, fractions, wanted.seed);
  return {cut("train", 0, groups, dealt[0], data.max_groups), cut("val", 0, groups, dealt[1], data.max_groups),
          cut("test", 0, groups, dealt[2], data.max_groups)};
}

Splits take_own_splits(const Source& source, const DataSection& data) {
  if (data.split) {
    std::string names;
    for (const std::string& name : source.splits()) names += (names.empty() ? "" : ", ") + name;
    throw Error(Exit::bad_input, "data",
                "data.split: source '" + source.id() + "' divides its data itself (" + names +
                    "); remove data.split and use the source's own option under [data.options]");
  }
  std::vector<Split> found;
  for (const char* name : split_names) {
    const auto at = std::find(source.splits().begin(), source.splits().end(), name);
    if (at == source.splits().end()) {
      found.push_back({name, 0, {}});
      continue;
    }
    const auto split = static_cast<uint32_t>(at - source.splits().begin());
    const std::vector<Group>& groups = source.groups(split);
    // A fixed seed: data.split, which has one, is refused here.
    found.push_back(cut(name, split, groups, shuffled(groups.size(), 0, split), data.max_groups));
  }
  return {std::move(found[0]), std::move(found[1]), std::move(found[2])};
}

}  // namespace

Split::Split(std::string name, uint32_t source_split, std::vector<Group> groups)
    : name_(std::move(name)), source_split_(source_split), groups_(std::move(groups)) {
  uint64_t total = 0;
  for (const Group& group : groups_) ends_.push_back(total += group.count);
}

uint64_t Split::source_index(uint64_t i) const {
  const auto end = std::upper_bound(ends_.begin(), ends_.end(), i);
  const Group& group = groups_[static_cast<size_t>(end - ends_.begin())];
  // From this sample on, `*end - i` samples of the group are left.
  return group.first + group.count - (*end - i);
}

std::string Split::place_of(uint64_t source_index) const {
  const auto after = std::upper_bound(groups_.begin(), groups_.end(), source_index,
                                      [](uint64_t i, const Group& group) { return i < group.first; });
  const std::string group = after == groups_.begin() ? "" : std::prev(after)->name;
  return "sample " + std::to_string(source_index) + " of split '" + name_ + "'" +
         (group.empty() ? "" : ", group '" + group + "'");
}

const Split* Splits::find(const std::string& name) const {
  for (const Split* split : {&train, &val, &test}) {
    if (split->name() == name) return split;
  }
  return nullptr;
}

nlohmann::json Splits::json() const {
  constexpr size_t most_names = 10'000;
  nlohmann::json all = {{"format", 1}};
  for (const Split* split : {&train, &val, &test}) {
    if (split->groups().empty()) continue;
    nlohmann::json names = nlohmann::json::array();
    for (const Group& group : split->groups()) {
      if (names.size() == most_names) break;
      names.push_back(group.name);
    }
    all[split->name()] = {
        {"samples", split->length()}, {"groups", split->groups().size()}, {"names", std::move(names)}};
  }
  return all;
}

Splits divide(const Source& source, const DataSection& data) {
  const bool undivided = source.splits().size() == 1 && source.splits().front() == "all";
  Splits splits = undivided ? divide_groups(source, data) : take_own_splits(source, data);
  if (splits.train.length() == 0) {
    throw Error(Exit::bad_input, "data",
                "source '" + source.id() + "' gives no training samples: its split 'train' is " +
                    (splits.train.groups().empty() ? "missing or empty" : "without samples") +
                    "; check the path and the windows under [data.options]");
  }
  return splits;
}

}  // namespace headroom
