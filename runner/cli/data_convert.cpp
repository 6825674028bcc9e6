#include <memory>
#include <system_error>
#include <unistd.h>

#include "arrays/array_session.hpp"
#include "arrays/hdf5_rewrite.hpp"
#include "arrays/hdf5_writer.hpp"
#include "cli/commands.hpp"
#include "cli/conversion.hpp"
#include "cli/data_import.hpp"
#include "cli/piece_conversion.hpp"
#include "data/services.hpp"
#include "error.hpp"

namespace headroom {

namespace {

namespace fs = std::filesystem;

constexpr int64_t chunk_cache_bytes = 64 << 20;  // of the files that are read

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
    return {"copied, " + file_size_text(partial)};
  }
  const Rewritten result = rewrite_file(item.from, partial, options, progress);
  return {file_size_text(item.from) + " -> " + file_size_text(partial) + ", datasets: " +
              std::to_string(result.rewritten) + " rewritten, " + std::to_string(result.copied) + " copied as they are",
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
    return Written{file_size_text(partial)};
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
  if (words.source.empty() && !words.set.set.empty())
    throw Error(Exit::bad_input, "cli", "--set sets keys of a datasource's conversion; name it with --source");
  if (const auto importing = import_options(words)) return import_files(words, *importing, folder, line);
  if (words.source.empty()) {
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
