#include "cli/conversion.hpp"

#include <algorithm>
#include <cstdio>
#include <unistd.h>

#include "arrays/hdf5_writer.hpp"
#include "error.hpp"
#include "memory/readable.hpp"
#include "record/progress.hpp"

namespace headroom {

namespace fs = std::filesystem;

namespace {

constexpr int64_t steps = 100;       // of an item's progress
constexpr double quiet_seconds = 2;  // a pipe gets no progress of items that are quicker

// Item by item: progress, a name once an item is whole, a line in the record.
class Conversion {
 public:
  // A pipe gets a line every tenth of an item.
  Conversion(WriteItem write, ConvertRecord& record, size_t count)
      : write_(std::move(write)), record_(record), count_(count), progress_(terminal_, steps / 10) {}

  void convert(const ConvertItem& item, size_t number) {
    step_ = 0;
    const fs::path partial = partial_of(item);
    progress_.begin(item.from.filename().string() + " (" + std::to_string(number) + "/" + std::to_string(count_) + ")",
                    "convert", steps, 0);
    const double began = steady_seconds();
    Written written;
    try {
      make_folder(item.to);
      written = write_(item, partial, [&](uint64_t done, uint64_t all) { advance(done, all, began); });
      // The line before the name: a file that has its name has its line (ConvertRecord).
      record_.add(item, partial, written.others);
      put_in_place(partial, item.to);
    } catch (...) {
      ::unlink(partial.c_str());
      throw;
    }
    progress_.end(written.summary);
  }

 private:
  void advance(uint64_t done, uint64_t all, double began) {
    // 0: not known, as of a video. A terminal sees the speed.
    if (all == 0 && !terminal_.control) return;
    const auto step =
        all > 0 ? static_cast<int64_t>(static_cast<double>(done) / static_cast<double>(all) * steps) : step_;
    const double seconds = std::max(1e-3, steady_seconds() - began);
    if (all > 0 && (step == step_ || (!terminal_.control && seconds < quiet_seconds))) return;
    step_ = step;
    progress_.update(step, {{"MiB/s", static_cast<double>(done) / (1 << 20) / seconds}});
  }

  static void make_folder(const fs::path& file) {
    std::error_code failed;
    if (file.has_parent_path()) fs::create_directories(file.parent_path(), failed);
    if (failed) throw CannotWrite("cannot make folder " + file.parent_path().string() + ": " + failed.message());
  }

  WriteItem write_;
  ConvertRecord& record_;
  size_t count_;
  Terminal terminal_ = terminal_of(2);
  Progress progress_;
  int64_t step_ = 0;
};

}  // namespace

void convert_all(const std::vector<ConvertItem>& items, WriteItem write, ConvertRecord& record, const fs::path& to,
                 CommandLine& line) {
  Conversion conversion(std::move(write), record, items.size());
  size_t done = 0, before = 0, bad = 0;
  remove_leftovers(items);
  const auto look_past = [&](const Error& problem) {
    if (problem.exit_code() != Exit::data || items.size() == 1) throw problem;
    std::fprintf(stderr, "%s\n", problem.what());
    ++bad;
  };
  for (size_t i = 0; i < items.size(); ++i) {
    if (items[i].done) {
      ++before;
      continue;
    }
    try {
      conversion.convert(items[i], i + 1);
      ++done;
    } catch (const CannotWrite& problem) {
      // Ahead of sdk::Error, which it is, too: a full disk stops the next item as well.
      throw Error(Exit::cannot_write, "data convert", problem.what());
    } catch (const sdk::Error& problem) {
      const bool asked_wrongly = problem.status() == HR_INVALID_ARGUMENT;
      look_past(Error(asked_wrongly ? Exit::bad_input : Exit::data, "data convert", problem.what()));
    } catch (const Error& problem) {
      look_past(problem);
    }
  }
  std::printf("%zu files converted, %zu were done before, %zu could not be read: %s\n", done, before, bad, to.c_str());
  if (bad > 0) line.exit_code = static_cast<int>(Exit::data);
}

std::string file_size_text(const fs::path& file) { return size_text(static_cast<int64_t>(fs::file_size(file))); }

}  // namespace headroom
