// Experiment files that exist for one test, and the sentence a refusal ends in.
#pragma once

#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <ostream>
#include <stdlib.h>
#include <string>
#include <utility>

#include "config/experiment.hpp"

namespace headroom {

class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name =
        (std::filesystem::canonical(std::filesystem::temp_directory_path()) / "headroom-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("mkdtemp failed for " + name);
    path_ = name;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path write(const std::string& name, const std::string& text) const {
    const std::filesystem::path file = path_ / name;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file, std::ios::binary) << text;
    return file;
  }

 private:
  std::filesystem::path path_;
};

inline std::string replaced(std::string text, const std::string& from, const std::string& to) {
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
  return text;
}

// What `action` throws as Error(bad_input).
template <class Action>
std::string refusal(Action&& action) {
  try {
    std::forward<Action>(action)();
  } catch (const Error& error) {
    EXPECT_EQ(error.exit_code(), Exit::bad_input);
    return error.what();
  }
  return "accepted";
}

// The three keys every experiment needs, on lines 1 to 3.
inline const std::string required_keys = "experiment.name = \"x\"\nmodel.plugin = \"m\"\ndata.source = \"s\"\n";

inline Experiment loaded(const std::string& text) {
  const TemporaryFolder folder;
  return load_experiment(folder.write("experiment.toml", text));
}

struct BrokenFile {
  std::string name, text, sentence;  // FILE stands for the file's path, FOLDER for its folder
};

inline std::ostream& operator<<(std::ostream& stream, const BrokenFile& broken) { return stream << broken.name; }

inline std::string refusal_of(const BrokenFile& broken) {
  const TemporaryFolder folder;
  const auto file = folder.write("experiment.toml", broken.text);
  const std::string sentence = refusal([&] { load_experiment(file); });
  return replaced(replaced(sentence, file.string(), "FILE"), folder.path().string(), "FOLDER");
}

}  // namespace headroom
