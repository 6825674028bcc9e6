#include "cli/convert_items.hpp"

#include <cstdio>
#include <unistd.h>

#include "arrays/hdf5_writer.hpp"
#include "error.hpp"
#include "record/progress.hpp"

namespace headroom {

namespace {

namespace fs = std::filesystem;

constexpr int64_t steps = 100;       // of an item's progress
constexpr double quiet_seconds = 2;  // a pipe gets no progress of items that are quicker

class Conversion {
 public:
  Conversion(WriteItem write, ConvertRecord& record, size_t count)
      : write_(std::move(write)), record_(record), count_(count), progress_(terminal_, steps / 10) {}

  void convert(const ConvertItem& item, size_t number) {
    step_ = 0;
    const fs::path partial = item.to.parent_path() / ("." + item.to.filename().string() + ".converting");
    progress_.begin(item.from.filename().string() + " (" + std::to_string(number) + "/" + std::to_string(count_) + ")",
                    "convert", steps, 0);
    const double began = steady_seconds();
    std::string summary;
    try {
      make_folder(item.to);
      summary = write_(item, partial, [&](uint64_t done, uint64_t all) { advance(done, all, began); });
      record_.add(item, partial);
      put_in_place(partial, item.to);
    } catch (...) {
      ::unlink(partial.c_str());
      throw;
    }
    progress_.end(summary);
  }

 private:
  void advance(uint64_t done, uint64_t all, double began) {
    const auto step = static_cast<int64_t>(static_cast<double>(done) / static_cast<double>(all) * steps);
    const double seconds = std::max(1e-3, steady_seconds() - began);
    if (step == step_ || (!terminal_.control && seconds < quiet_seconds)) return;
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

}  // namespace headroom
