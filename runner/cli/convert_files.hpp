// What a conversion has to do - files, or the pieces that a datasource plugin names - and what an earlier one has done.
#pragma once

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "arrays/other_files.hpp"
#include "config/experiment.hpp"
#include "config/options.hpp"
#include "imports/import_file.hpp"
#include "plugins/library.hpp"

namespace headroom {

bool is_hdf5_name(const std::filesystem::path& file);  // *.hdf5, *.h5, *.mat, ...

// Regular files below `folder`, sorted; names with a leading dot are left out, links to folders are followed.
std::vector<std::filesystem::path> regular_files(const std::filesystem::path& folder);

struct ConvertItem {
  std::filesystem::path from, to;
  bool is_hdf5 = true;  // else copied as it is
  bool done = false;    // by an earlier conversion, from the same file with the same options
};

// A line for each finished file, in `.headroom-convert.jsonl` of the folder that gets them. It is written just before
// the file gets its name: a file that is there and has a line is whole.
class ConvertRecord {
 public:
  // `options`: what was asked for, as text.
  ConvertRecord(std::filesystem::path folder, std::string options);
  bool has(const ConvertItem& item) const;
  // `others`: further files that it was made from.
  void add(const ConvertItem& item, const std::filesystem::path& partial, const std::vector<OtherFile>& others);

 private:
  nlohmann::json facts_of(const ConvertItem& item, const std::filesystem::path& written) const;
  std::filesystem::path folder_, file_;
  std::string options_;
  std::map<std::string, nlohmann::json> others_;  // by the rest of their line
};

// Throws Error(bad_input) where `from` is not there, or `to` is it or lies inside.
void require_apart(const std::filesystem::path& from, const std::filesystem::path& to);

// Where an item is written before it has its name.
std::filesystem::path partial_of(const ConvertItem& item);

// Sees which are done. Throws Error(bad_input) where something would be overwritten, also one item by another.
void look_for_done(std::vector<ConvertItem>& items, const ConvertRecord& record);

// Removes what a conversion of these items that was killed has left of files beside theirs. [control]
void remove_leftovers(const std::vector<ConvertItem>& items);

// The files of `from` that are of this format, or itself, each to become an HDF5 file; both of the above. Throws
// Error(bad_input) where there are none.
std::vector<ConvertItem> files_to_import(const std::filesystem::path& from, const std::filesystem::path& to,
                                         ImportFormat format, const ConvertRecord& record);

// Both, for the files of `from`, or itself.
std::vector<ConvertItem> files_to_convert(const std::filesystem::path& from, const std::filesystem::path& to,
                                          const ConvertRecord& record);

// A conversion that a datasource plugin does (headroom.convert/1): into the form that it reads best.
class PieceConversion {
 public:
  // `set`: keys of the plugin's own table. Error(bad_input) where the plugin converts nothing, or a key is wrong.
  PieceConversion(const Library& source, const std::vector<Override>& set);

  // What was asked for, as text that tells one conversion from another.
  std::string text() const;

  // The pieces of `from`. Error(bad_input) where something would be overwritten.
  std::vector<ConvertItem> list(const std::filesystem::path& from, const std::filesystem::path& to,
                                const ConvertRecord& record) const;

  void write(const std::filesystem::path& from, const std::filesystem::path& piece,
             const std::filesystem::path& file) const;

 private:
  Library source_;
  const hr_convert* api_;
  OptionTable table_;
  OptionValues values_;
  NativeOptions native_;
};

}  // namespace headroom
