#include "masks.hpp"

#include <algorithm>
#include <limits>
#include <set>

#include "integers.hpp"

namespace hdf5_source {

namespace {

// Names groups by their last part ("demo_0") or by their path. Reads each file's once.
class NameMask : public Mask {
 public:
  NameMask(const sdk::Host& host, const std::string& dataset) : host_(host), dataset_(dataset) {}

  std::vector<RowRange> take(const Sequence& sequence, const Stretch& stretch) override {
    if (sequence.file != file_) read(sequence.file);
    const std::string last = sequence.group.substr(sequence.group.find_last_of('/') + 1);
    if (find(last) || find(sequence.group) || (!sequence.number.empty() && find(sequence.number)))
      return {stretch.rows};
    return {};
  }
  std::vector<std::string> left() override {
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

// A 0 or 1 for each row, or for each episode. Kept as runs of ones, of one sequence at a time.
class NumberMask : public Mask {
 public:
  NumberMask(const sdk::Host& host, const SplitSettings& split, const std::vector<Stretch>& stretches)
      : host_(host), split_(split), stretches_(stretches) {}

  std::vector<RowRange> take(const Sequence& sequence, const Stretch& stretch) override {
    if (stretch.sequence != sequence_) read(sequence, stretch.sequence);
    const bool by_row = count_ == sequence.rows;
    if (!by_row && !stretch.episode) {
      bad(sequence, "has " + std::to_string(count_) + " values for " + std::to_string(sequence.rows) +
                        " rows; give one for each row");
    }
    if (!by_row && count_ != episodes_) {
      bad(sequence, "has " + std::to_string(count_) + " values, which are neither the " +
                        std::to_string(sequence.rows) + " rows nor the " + std::to_string(episodes_) +
                        " episodes; give one for each");
    }
    const RowRange wanted = by_row ? stretch.rows : RowRange{*stretch.episode, *stretch.episode + 1};
    std::vector<RowRange> pieces;
    const auto after = [](const RowRange& run, uint64_t row) { return run.end <= row; };
    for (auto run = std::lower_bound(ones_.begin(), ones_.end(), wanted.begin, after);
         run != ones_.end() && run->begin < wanted.end; ++run)
      pieces.push_back({std::max(run->begin, wanted.begin), std::min(run->end, wanted.end)});
    if (!by_row && !pieces.empty()) pieces = {stretch.rows};
    return pieces;
  }

 private:
  [[noreturn]] void bad(const Sequence& sequence, const std::string& sentence) const {
    throw sdk::Error(HR_DATA_CORRUPT, "split '" + split_.name + "': " +
                                          place_of(sequence.file, sequence.object(split_.mask)) + " " + sentence);
  }
  void read(const Sequence& sequence, uint32_t number) {
    constexpr uint64_t block = 1 << 16;
    sequence_ = number;
    episodes_ = std::ranges::equal_range(stretches_, number, {}, &Stretch::sequence).size();
    ones_.clear();
    const std::string object = sequence.object(split_.mask);
    const sdk::Array array = open_integers(host_, sequence.file, object, "split '" + split_.name + "': mask");
    count_ = array.info().shape[0];
    for (uint64_t begin = 0; begin < count_; begin += block) {
      const std::vector<int64_t> values = read_integers(array, begin, std::min(block, count_ - begin));
      for (uint64_t i = 0; i < values.size(); ++i) {
        if (values[i] != 0 && values[i] != 1)
          bad(sequence,
              "has " + std::to_string(values[i]) + " at " + std::to_string(begin + i) + "; a mask holds 0 and 1");
        if (values[i] == 0) continue;
        if (ones_.empty() || ones_.back().end != begin + i) ones_.push_back({begin + i, begin + i});
        ++ones_.back().end;
      }
    }
  }

  sdk::Host host_;
  const SplitSettings& split_;
  const std::vector<Stretch>& stretches_;
  uint32_t sequence_ = std::numeric_limits<uint32_t>::max();
  uint64_t count_ = 0, episodes_ = 0;
  std::vector<RowRange> ones_;
};

}  // namespace

std::unique_ptr<Mask> open_mask(const sdk::Host& host, const SplitSettings& split,
                                const std::vector<Sequence>& sequences, const std::vector<Stretch>& stretches) {
  const Sequence& first = sequences.front();
  const auto holds_numbers = [&] {
    try {
      return sdk::Array(host, first.file, first.object(split.mask)).info().dtype.bits != 0;
    } catch (const sdk::Error& problem) {
      if (problem.status() != HR_INVALID_ARGUMENT && problem.status() != HR_NOT_FOUND) throw;
      return false;
    }
  };
  if (holds_numbers()) return std::make_unique<NumberMask>(host, split, stretches);
  return std::make_unique<NameMask>(host, split.mask);
}

}  // namespace hdf5_source
