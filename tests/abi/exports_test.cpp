// What the built files export and link, as binutils see it.
#include <cstdio>
#include <filesystem>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <memory>
#include <sstream>

#include "plugins/library.hpp"

namespace headroom {
namespace {

using testing::HasSubstr;
using testing::Not;

std::string output_of(const std::string& command) {
  struct Close {
    void operator()(FILE* pipe) const { pclose(pipe); }
  };
  const std::unique_ptr<FILE, Close> pipe(popen(command.c_str(), "r"));
  std::string text;
  char buffer[4096];
  while (std::size_t count = fread(buffer, 1, sizeof buffer, pipe.get())) text.append(buffer, count);
  return text;
}

bool has_binutils() { return std::system("command -v nm readelf >/dev/null 2>&1") == 0; }

// Every plugin this build made that is meant for users.
std::vector<std::filesystem::path> plugins() {
  std::vector<std::filesystem::path> found;
  for (const char* folder : {HEADROOM_PLUGIN_DIR, HEADROOM_EXAMPLE_DIR}) {
    std::error_code problem;
    for (const auto& entry : std::filesystem::directory_iterator(folder, problem)) {
      if (entry.path().extension() == ".so") found.push_back(entry.path());
    }
  }
  return found;
}

TEST(Exports, OneSymbolAPlugin) {
  if (!has_binutils()) GTEST_SKIP() << "needs nm and readelf";
  ASSERT_FALSE(plugins().empty());
  for (const auto& plugin : plugins()) {
    SCOPED_TRACE(plugin);
    std::istringstream lines(output_of("nm -D --defined-only '" + plugin.string() + "'"));
    std::string address, kind, name, more;
    ASSERT_TRUE(lines >> address >> kind >> name);
    EXPECT_EQ(name, "headroom_plugin");
    EXPECT_THAT((std::vector<std::string>{"D", "R"}), testing::Contains(kind));
    EXPECT_FALSE(lines >> more) << more << " is exported too";
  }
}

TEST(Exports, NeverUnloaded) {
  if (!has_binutils()) GTEST_SKIP() << "needs nm and readelf";
  for (const auto& plugin : plugins())
    EXPECT_THAT(output_of("readelf -d '" + plugin.string() + "'"), HasSubstr("NODELETE")) << plugin;
}

TEST(Exports, TorchOnlyWhereItIsSaid) {
  if (!has_binutils()) GTEST_SKIP() << "needs nm and readelf";
  for (const auto& plugin : plugins()) {
    SCOPED_TRACE(plugin);
    const auto note = read_note(plugin);
    ASSERT_TRUE(note.has_value());
    const std::string libraries = output_of("readelf -d '" + plugin.string() + "'");
    if ((note->flags & HR_PLUGIN_TORCH) != 0) {
      EXPECT_THAT(libraries, HasSubstr("libtorch_cpu"));
      EXPECT_NE(note->torch_tag, "");
    } else {
      EXPECT_THAT(libraries, Not(HasSubstr("libtorch")));
      EXPECT_THAT(libraries, Not(HasSubstr("libc10")));
      EXPECT_EQ(note->torch_tag, "");
    }
  }
}

TEST(Exports, TheFrontIsTorchFree) {
  const std::string program = HEADROOM_BUILD_DIR "/bin/headroom";
  if (!has_binutils() || !std::filesystem::exists(program)) GTEST_SKIP() << "needs nm, readelf and bin/headroom";
  const std::string libraries = output_of("readelf -d '" + program + "'");
  EXPECT_THAT(libraries, HasSubstr("libc.so"));
  EXPECT_THAT(libraries, Not(HasSubstr("libtorch")));
  EXPECT_THAT(libraries, Not(HasSubstr("libc10")));
}

}  // namespace
}  // namespace headroom
