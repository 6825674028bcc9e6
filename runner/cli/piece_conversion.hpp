// `headroom data convert --source`.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "cli/convert_files.hpp"
#include "config/experiment.hpp"
#include "config/options.hpp"
#include "plugins/library.hpp"

namespace headroom {

// A conversion by a datasource plugin (headroom.convert/1), into the form that the plugin reads fastest.
class PieceConversion {
 public:
  // `set`: keys of the plugin's own table. Error(bad_input) where the plugin cannot convert, or a key is wrong.
  PieceConversion(const Library& source, const std::vector<Override>& set);

  // The options as text, for ConvertRecord.
  std::string text() const;

  // The pieces of `from`. Error(bad_input) where a file would be overwritten.
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
