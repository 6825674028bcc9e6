#include <cstdio>
#include <fcntl.h>
#include <unistd.h>

#include "cli/command_line.hpp"
#include "cli/convert_files.hpp"
#include "data/arrays.hpp"
#include "data/hdf5_output.hpp"
#include "data/hdf5_rewrite.hpp"
#include "memory/size_text.hpp"
#include "record/progress.hpp"

namespace headroom {

namespace {

namespace fs = std::filesystem;

constexpr int64_t steps = 100;                   // of a file's progress
constexpr double quiet_seconds = 2;              // a pipe gets no progress of files that are quicker
constexpr int64_t chunk_cache_bytes = 64 << 20;  // of the files that are read

struct ConvertWords {
  std::string path, out;
  std::vector<uint64_t> chunk;
  int deflate = -1;
  bool contiguous = false, shuffle = false, verify = true;
};

RewriteOptions options_of(const ConvertWords& words) {
  RewriteOptions options;
  options.contiguous = words.contiguous;
  options.chunk = words.chunk;
  if (words.deflate >= 0) options.deflate = words.deflate;
  options.shuffle = words.shuffle;
  options.verify = words.verify;
  const bool packed = options.deflate || !options.chunk.empty();
  if (words.contiguous && (packed || words.shuffle)) {
    throw Error(Exit::bad_input, "cli",
                "--contiguous leaves no chunks for --chunk, --deflate or --shuffle; choose one");
  }
  if (words.shuffle && !options.deflate)
    throw Error(Exit::bad_input, "cli", "--shuffle alone makes nothing smaller; add --deflate 4");
  return options;
}

std::string text_of(const RewriteOptions& options) {
  std::string text = options.contiguous ? "contiguous" : "";
  for (const uint64_t extent : options.chunk) text += (text.empty() ? "chunk " : ",") + std::to_string(extent);
  if (options.deflate) text += " deflate " + std::to_string(*options.deflate);
  return text + (options.shuffle ? " shuffle" : "");
}

class Conversion {
 public:
  Conversion(const RewriteOptions& options, ConvertRecord& record, size_t count)
      : options_(options), record_(record), count_(count), progress_(terminal_, steps / 10) {}

  void convert(const ConvertItem& item, size_t number) {
    step_ = 0;
    const fs::path partial = item.to.parent_path() / ("." + item.to.filename().string() + ".converting");
    progress_.begin(item.from.filename().string() + " (" + std::to_string(number) + "/" + std::to_string(count_) + ")",
                    "convert", steps, 0);
    const double began = steady_seconds();
    Rewritten result;
    try {
      make_folder(item.to);
      if (item.is_hdf5) {
        result =
            rewrite_file(item.from, partial, options_, [&](uint64_t done, uint64_t all) { advance(done, all, began); });
      } else {
        copy(item.from, partial);
      }
      record_.add(item, partial);
      put_in_place(partial, item.to);
    } catch (...) {
      ::unlink(partial.c_str());
      throw;
    }
    progress_.end(summary(item, result));
  }

 private:
  static std::string summary(const ConvertItem& item, const Rewritten& result) {
    const auto size = [](const fs::path& file) { return size_text(static_cast<int64_t>(fs::file_size(file))); };
    if (!item.is_hdf5) return "copied, " + size(item.to);
    return size(item.from) + " -> " + size(item.to) + ", datasets: " + std::to_string(result.rewritten) +
           " rewritten, " + std::to_string(result.copied) + " copied as they are";
  }

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

  static void copy(const fs::path& from, const fs::path& partial) {
    std::error_code failed;
    fs::copy_file(from, partial, fs::copy_options::overwrite_existing, failed);
    if (failed) throw CannotWrite("cannot copy " + from.string() + " to " + partial.string() + ": " + failed.message());
  }

  const RewriteOptions& options_;
  ConvertRecord& record_;
  size_t count_;
  Terminal terminal_ = terminal_of(2);
  Progress progress_;
  int64_t step_ = 0;
};

void convert(const ConvertWords& words, CommandLine& line) {
  const RewriteOptions options = options_of(words);
  const fs::path from = words.path, to = words.out;
  std::error_code failed;
  const fs::path folder = fs::is_directory(from, failed) ? to : to.has_parent_path() ? to.parent_path() : fs::path(".");
  ConvertRecord record(folder, text_of(options));
  const auto items = files_to_convert(from, to, record);
  set_chunk_cache_limit(chunk_cache_bytes);
  Conversion conversion(options, record, items.size());
  size_t done = 0, before = 0, bad = 0;
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
    } catch (const sdk::Error& problem) {  // others can be read
      const bool asked_wrongly = problem.status() == HR_INVALID_ARGUMENT;
      if (asked_wrongly || items.size() == 1)
        throw Error(asked_wrongly ? Exit::bad_input : Exit::data, "data convert", problem.what());
      std::fprintf(stderr, "[data convert] %s\n", problem.what());
      ++bad;
    }
  }
  std::printf("%zu files converted, %zu were done before, %zu could not be read: %s\n", done, before, bad, to.c_str());
  if (bad > 0) line.exit_code = static_cast<int>(Exit::data);
}

}  // namespace

void add_data_convert(CLI::App& data, CommandLine& line) {
  auto* command = data.add_subcommand("convert", "Write HDF5 files again in the layout that reads fastest");
  command->footer(
      "Example: headroom data convert data/emg --out data/emg_fast\n"
      "Without options, uncompressed datasets become contiguous and compressed ones stay as they are.");
  auto words = std::make_shared<ConvertWords>();
  command->add_option("path", words->path, "An HDF5 file, or a folder of them")->required();
  command->add_option("--out", words->out, "The file or folder to write; what is there is never overwritten")
      ->required();
  command->add_option("--chunk", words->chunk, "Chunks of this many rows, or of these extents: 1,480,640,3")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(CLI::PositiveNumber);
  command->add_option("--deflate", words->deflate, "Compress at this level")->check(CLI::Range(0, 9));
  command->add_flag("--contiguous", words->contiguous, "Compressed datasets become contiguous too");
  command->add_flag("--shuffle", words->shuffle, "Sort bytes by place before compressing");
  command->add_flag("--verify,!--no-verify", words->verify, "Read everything back and compare it (on)");
  command->callback([words, &line] { convert(*words, line); });
}

}  // namespace headroom
