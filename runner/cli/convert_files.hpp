// The files that a conversion writes, and which of them an earlier conversion finished.
#pragma once

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "arrays/other_files.hpp"

namespace headroom {

bool is_hdf5_name(const std::filesystem::path& file);  // *.hdf5, *.h5, *.mat, ...

// Regular files below `folder`, sorted. Leaves out names with a leading dot; follows links to folders.
std::vector<std::filesystem::path> regular_files(const std::filesystem::path& folder);

struct ConvertItem {
  std::filesystem::path from, to;
  bool is_hdf5 = true;  // else it is copied
  bool done = false;    // by an earlier conversion, from the same file with the same options
};

// The record of finished files: a line for each in `.headroom-convert.jsonl` of the target folder. The line is written
// just before the file gets its name, so a file that exists and has a line is whole.
class ConvertRecord {
 public:
  // `options`: the options of the conversion, as text.
  ConvertRecord(std::filesystem::path folder, std::string options);
  bool has(const ConvertItem& item) const;
  // `others`: the other files that it was made from.
  void add(const ConvertItem& item, const std::filesystem::path& partial, const std::vector<OtherFile>& others);

 private:
  nlohmann::json facts_of(const ConvertItem& item, const std::filesystem::path& written) const;
  std::filesystem::path folder_, file_;
  std::string options_;
  std::map<std::string, nlohmann::json> others_;  // by the rest of their line
};

// Throws Error(bad_input) where `from` does not exist, and where `to` is `from` or is inside it.
void require_apart(const std::filesystem::path& from, const std::filesystem::path& to);

// The path that an item is written to before it gets its name.
std::filesystem::path partial_of(const ConvertItem& item);

// Marks the items that are done. Throws Error(bad_input) where a file would be overwritten, or two items would have the
// same name.
void look_for_done(std::vector<ConvertItem>& items, const ConvertRecord& record);

// Removes the partial files that a killed conversion of these items left. [control]
void remove_leftovers(const std::vector<ConvertItem>& items);

// The files of `from`, or `from` itself, checked with require_apart() and look_for_done().
std::vector<ConvertItem> files_to_convert(const std::filesystem::path& from, const std::filesystem::path& to,
                                          const ConvertRecord& record);

}  // namespace headroom
