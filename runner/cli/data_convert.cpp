#include <cstdio>
#include <functional>
#include <unistd.h>

#include "arrays/array_session.hpp"
#include "arrays/hdf5_rewrite.hpp"
#include "arrays/hdf5_writer.hpp"
#include "cli/command_line.hpp"
#include "cli/convert_files.hpp"
#include "data/services.hpp"
#include "error.hpp"
#include "imports/import_file.hpp"
#include "memory/readable.hpp"
#include "record/progress.hpp"

namespace headroom {

namespace {

namespace fs = std::filesystem;

constexpr int64_t steps = 100;       // of an item's progress
constexpr double quiet_seconds = 2;  // a pipe gets no progress of items that are quicker

struct Written {
  std::string summary;                 // what is said of it
  std::vector<OtherFile> others = {};  // that it was made from, besides the item itself
};

// Writes one item to `partial`, where an older one may stand. Throws CannotWrite, sdk::Error or Error.
using WriteItem =
    std::function<Written(const ConvertItem& item, const fs::path& partial, const RewriteProgress& progress)>;

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

// Those that are not done. One that cannot be read is told, and the others go on; the only one is an error.
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

constexpr int64_t chunk_cache_bytes = 64 << 20;  // of the files that are read

struct ConvertWords {
  std::string path, out, source, from;  // source and from "": HDF5 files in another layout
  std::vector<std::string> columns;
  ExperimentWords set;
  std::vector<uint64_t> chunk;
  int deflate = -1;
  bool contiguous = false, shuffle = false, verify = true;
};

RewriteOptions options_of(const ConvertWords& words) {
  RewriteOptions options;
  options.contiguous = words.contiguous;
  options.chunk = words.chunk;
  // -1: not given; 0 is a level.
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

// What decides how the file looks, for the record; --verify does not.
std::string text_of(const RewriteOptions& options) {
  std::string text = options.contiguous ? "contiguous" : "";
  for (const uint64_t extent : options.chunk) text += (text.empty() ? "chunk " : ",") + std::to_string(extent);
  if (options.deflate) text += " deflate " + std::to_string(*options.deflate);
  return text + (options.shuffle ? " shuffle" : "");
}

std::string size_of(const fs::path& file) { return size_text(static_cast<int64_t>(fs::file_size(file))); }

void copy_as_it_is(const fs::path& from, const fs::path& partial) {
  std::error_code failed;
  // A conversion that was killed may have left a part of it.
  fs::copy_file(from, partial, fs::copy_options::overwrite_existing, failed);
  if (failed) throw CannotWrite("cannot copy " + from.string() + " to " + partial.string() + ": " + failed.message());
}

Written write_again(const ConvertItem& item, const fs::path& partial, const RewriteOptions& options,
                    const RewriteProgress& progress) {
  if (!item.is_hdf5) {
    copy_as_it_is(item.from, partial);
    return {"copied, " + size_of(partial)};
  }
  const Rewritten result = rewrite_file(item.from, partial, options, progress);
  return {size_of(item.from) + " -> " + size_of(partial) + ", datasets: " + std::to_string(result.rewritten) +
              " rewritten, " + std::to_string(result.copied) + " copied as they are",
          result.others};
}

void rewrite(const ConvertWords& words, ConvertRecord& record, RewriteOptions options, CommandLine& line) {
  const auto items = files_to_convert(words.path, words.out, record);
  std::error_code failed;
  if (fs::is_directory(words.path, failed)) options.tree = words.path;
  const auto write = [&](const ConvertItem& item, const fs::path& partial, const RewriteProgress& progress) {
    return write_again(item, partial, options, progress);
  };
  convert_all(items, write, record, words.out, line);
}

void convert_pieces(const ConvertWords& words, ConvertRecord& record, const PieceConversion& pieces,
                    CommandLine& line) {
  const auto items = pieces.list(words.path, words.out, record);
  const auto write = [&](const ConvertItem& item, const fs::path& partial, const RewriteProgress&) {
    ::unlink(partial.c_str());  // of a conversion that was killed
    pieces.write(words.path, item.from, partial);
    return Written{size_of(partial)};
  };
  convert_all(items, write, record, words.out, line);
}

// What is asked for where files of another format become HDF5: --from says so, or the names of both do. nullopt: they
// are HDF5 files.
std::optional<ImportOptions> import_options(const ConvertWords& words) {
  std::error_code failed;
  std::optional<ImportFormat> format;
  if (!words.from.empty()) {
    format = format_named(words.from);
  } else if (words.source.empty() && fs::is_regular_file(words.path, failed) && is_hdf5_name(words.out)) {
    format = format_of(words.path);
  }
  if (!format) {
    if (!words.columns.empty())
      throw Error(Exit::bad_input, "cli", "--columns chooses columns of --from csv and --from parquet");
    return std::nullopt;
  }
  if (!words.source.empty())
    throw Error(Exit::bad_input, "cli", "--from and --source are two ways to convert; choose one");
  if (words.contiguous || words.shuffle || !words.chunk.empty())
    throw Error(Exit::bad_input, "cli",
                "--from takes --deflate alone; convert the HDF5 files again for --chunk, --shuffle or --contiguous");
  const bool is_table = *format == ImportFormat::csv || *format == ImportFormat::parquet;
  if (!words.columns.empty() && !is_table)
    throw Error(Exit::bad_input, "cli", "--columns chooses columns of --from csv and --from parquet");
  ImportOptions options{*format, {}, std::max(0, words.deflate), words.verify};
  for (const std::string& word : words.columns) options.columns.push_back(column_group(word));
  return options;
}

std::string text_of(const ConvertWords& words, const ImportOptions& options) {
  std::string text = "from " + format_name(options.format);
  for (const std::string& columns : words.columns) text += " columns " + columns;
  return text + (options.deflate > 0 ? " deflate " + std::to_string(options.deflate) : "");
}

Written write_imported(const ConvertItem& item, const fs::path& partial, const ImportOptions& options,
                       const RewriteProgress& progress) {
  const Imported imported = import_file(item.from, partial, options, progress);
  std::string left_out;
  for (const std::string& name : imported.left_out) left_out += (left_out.empty() ? ", left out: " : ", ") + name;
  return {size_of(item.from) + " -> " + size_of(partial) + ", " + counted(imported.datasets, "dataset") +
          printable(left_out, 400)};
}

void import_all(const ConvertWords& words, ConvertRecord& record, const ImportOptions& options, CommandLine& line) {
  const auto items = files_to_import(words.path, words.out, options.format, record);
  const auto write = [&](const ConvertItem& item, const fs::path& partial, const RewriteProgress& progress) {
    return write_imported(item, partial, options, progress);
  };
  convert_all(items, write, record, words.out, line);
}

PieceConversion piece_conversion(const ConvertWords& words, const CommandLine& line) {
  if (words.contiguous || words.shuffle || !words.chunk.empty() || words.deflate >= 0) {
    throw Error(Exit::bad_input, "cli",
                "--source writes the form that this datasource reads best; leave --chunk, --deflate, --shuffle and "
                "--contiguous out");
  }
  // Before a plugin is loaded (register_service).
  register_data_services();
  return {Library::load(find_plugin(words.source, line.plugin_dirs)), words.set.overrides()};
}

void convert(const ConvertWords& words, CommandLine& line) {
  ArraySession::of_process()->set_chunk_cache_limit(chunk_cache_bytes);
  const fs::path to = words.out;
  std::error_code failed;
  // The record lies in the folder that gets the files.
  const fs::path folder = fs::is_directory(words.path, failed) ? to
                          : to.has_parent_path()               ? to.parent_path()
                                                               : fs::path(".");
  const std::optional<ImportOptions> importing = import_options(words);
  if (importing && words.set.set.empty()) {
    ConvertRecord record(folder, text_of(words, *importing));
    return import_all(words, record, *importing, line);
  }
  if (words.source.empty()) {
    if (!words.set.set.empty())
      throw Error(Exit::bad_input, "cli", "--set sets keys of a datasource's conversion; name it with --source");
    const RewriteOptions options = options_of(words);
    ConvertRecord record(folder, text_of(options));
    return rewrite(words, record, options, line);
  }
  const PieceConversion pieces = piece_conversion(words, line);
  ConvertRecord record(folder, pieces.text());
  convert_pieces(words, record, pieces, line);
}

}  // namespace

void add_data_convert(CLI::App& data, CommandLine& line) {
  auto* command = data.add_subcommand("convert", "Write data again in the form that reads fastest, or as HDF5");
  command->footer(
      "Example: headroom data convert data/emg --out data/emg_fast\n"
      "         headroom data convert tables --out data/tables --from csv --columns 'emg=emg_*' --columns angle=elbow\n"
      "Without options, uncompressed datasets of HDF5 files become contiguous and compressed ones stay as they are;\n"
      "with --source, a datasource plugin writes the form that it reads best; with --from, files of another format\n"
      "become HDF5 files, as the datasource hdf5 reads them. parquet takes python3 with pyarrow, video takes ffmpeg.");
  auto words = std::make_shared<ConvertWords>();
  command
      ->add_option("path", words->path,
                   "An HDF5 file, or a folder of them; with --source what its path may be; with --from other files")
      ->required();
  command->add_option("--out", words->out, "The file or folder to write; what is there is never overwritten")
      ->required();
  command->add_option("--source", words->source, "The datasource plugin that converts, by its id");
  command->add_option("--from", words->from,
                      "The format of the files: csv, numpy (.npz, .npy), parquet or video; not needed for one file");
  command
      ->add_option("--columns", words->columns,
                   "Of csv and parquet: DATASET=COLUMN,... with * and ?; repeats. Without it all numbers are written")
      ->allow_extra_args(false);
  command
      ->add_option("--set", words->set.set, "With --source: a key of its conversion, e.g. --set num_bins=32; repeats")
      ->allow_extra_args(false);
  add_plugin_dirs(*command, line);
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
