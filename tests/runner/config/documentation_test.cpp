// What docs/ shows is what the program says.
#include <fstream>
#include <gtest/gtest.h>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "config/fields.hpp"
#include "config/keys.hpp"
#include "config/values.hpp"
#include "files.hpp"

namespace headroom {

namespace {

std::string page_of(const std::string& name) {
  std::ifstream stream(HEADROOM_SOURCE_DIR "/docs/" + name);
  return {std::istreambuf_iterator<char>(stream), {}};
}

// The first block of code behind `heading` that opens with `fence`.
std::string block_of(const std::string& page, const std::string& heading, const std::string& fence) {
  const size_t open = page.find("\n" + fence + "\n", page.find(heading)) + fence.size() + 2;
  return page.substr(open, page.find("```", open) - open);
}

// One row for each key, with what it may hold, its default, its meaning and what it changes.
TEST(Documentation, HasARowForEveryKey) {
  const std::string page = page_of("experiment_files.md");
  std::map<std::string, std::string> defaults;
  const Experiment experiment;
  each_field(experiment, [&](std::string_view path, const auto& field) {
    defaults[std::string(path)] = value_literal(*find_key(path), field);
  });
  for (const Key& key : known_keys()) {
    const std::string value = defaults[key.path];
    const bool none = value.empty() || value == "{}";
    const std::string shown = key.required ? "required" : none ? "" : "`" + value + "`";
    const std::string row =
        "| `" + key.path + "` | " + allowed(key) + " | " + shown + " | " + key.help + " | " + effect_text(key) + " |";
    EXPECT_NE(page.find(row), std::string::npos) << row;
  }
}

TEST(Documentation, HasTheKeysOfTheTableInItsOrderAndNoOther) {
  const std::string page = page_of("experiment_files.md");
  std::vector<std::string> shown, known;
  const std::string start = "\n| `";
  for (size_t at = page.find(start, page.find("## Every key")); at != std::string::npos;
       at = page.find(start, at + 1)) {
    const size_t begin = at + start.size();
    shown.push_back(page.substr(begin, page.find('`', begin) - begin));
  }
  for (const Key& key : known_keys()) known.push_back(key.path);
  EXPECT_EQ(shown, known);
}

TEST(Documentation, TheExampleLoadsAndItsSlipsAreRefusedAsShown) {
  const std::string page = page_of("experiment_files.md"), example = block_of(page, "# Experiment files", "```toml");
  const TemporaryFolder folder;
  folder.write("experiments/emg/low_memory.toml", "");
  const auto said = [&](const std::string& text, const std::vector<Override>& overrides = {}) {
    const auto file = folder.write("wrist.toml", text);
    return replaced(refusal([&] { load_experiment(file, overrides); }), folder.path().string() + "/", "") + "\n";
  };
  EXPECT_EQ(said(example), "accepted\n");
  const std::string slip = said(replaced(example, "batch_size", "batch_sise"));
  EXPECT_EQ(
      slip + said(replaced(example, "batch_size = 16", "batch_size = \"8\"")) + said(example, {{"train.epochs", "0"}}),
      block_of(page, "## What is refused", "```"));
  EXPECT_NE(page_of("errors.md").find(slip), std::string::npos) << slip;
}

}  // namespace

}  // namespace headroom
