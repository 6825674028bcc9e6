// Each hostile plugin is refused with its exact sentence, or survived.
#include <cstdlib>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "error.hpp"
#include "plugins/host.hpp"
#include "plugins/library.hpp"
#include "plugins/source.hpp"

namespace headroom {
namespace {

using testing::EndsWith;
using testing::HasSubstr;

std::string path_of(const std::string& name) { return HEADROOM_TEST_PLUGIN_DIR "/" + name + ".so"; }

template <class Body>
std::string sentence_of(Exit expected, Body body) {
  try {
    body();
  } catch (const Error& problem) {
    EXPECT_EQ(problem.exit_code(), expected) << problem.what();
    return problem.what();
  }
  return "nothing was thrown";
}

std::string refusal(const std::string& name) {
  return sentence_of(Exit::plugin, [&] { Library::load(path_of(name)); });
}

// What loading says after the path.
std::string after_path(const std::string& name) {
  const std::string sentence = refusal(name), start = "[plugin] " + std::filesystem::canonical(path_of(name)).string();
  EXPECT_EQ(sentence.substr(0, start.size()), start);
  return sentence.size() > start.size() ? sentence.substr(start.size()) : sentence;
}

class Hostile : public testing::Test {
 protected:
  void SetUp() override { unsetenv("HEADROOM_TEST_PLUGIN_RAN"); }
  void TearDown() override { set_host_torch_tag(nullptr); }
  static bool ran() { return std::getenv("HEADROOM_TEST_PLUGIN_RAN") != nullptr; }
};

TEST_F(Hostile, NothingWrongLoads) { EXPECT_EQ(Library::load(path_of("hostile_nothing")).id(), "hostile"); }

TEST_F(Hostile, LoadingTwiceGivesTheSamePlugin) {
  const auto first = Library::load(path_of("hostile_nothing"));
  const auto again =
      Library::load(HEADROOM_TEST_PLUGIN_DIR "/../" +
                    std::filesystem::path(HEADROOM_TEST_PLUGIN_DIR).filename().string() + "/hostile_nothing.so");
  EXPECT_EQ(&first.plugin(), &again.plugin());
}

TEST_F(Hostile, BadMagic) {
  EXPECT_EQ(after_path("hostile_magic"), " is damaged: its note does not begin with Headroom's magic number");
  EXPECT_FALSE(ran());
  EXPECT_EQ(after_path("hostile_magic_no_note"),
            ": headroom_plugin does not begin with Headroom's magic number: it is something else");
}

TEST_F(Hostile, OtherMajor) {
  const std::string rest =
      "' was built for plugin ABI 2.0; this headroom speaks ABI 1.0: update headroom, or rebuild the plugin with this "
      "headroom's header";
  EXPECT_EQ(after_path("hostile_major"), ": plugin 'hostile_major" + rest);
  EXPECT_FALSE(ran());
  EXPECT_EQ(after_path("hostile_major_no_note"), ": plugin 'hostile_major_no_note" + rest);
  EXPECT_TRUE(ran());
}

TEST_F(Hostile, HeaderSizes) {
  const std::string rest =
      " bytes; from 72 (ABI 1.0) to 1048576 are allowed: the plugin is damaged or fills struct_size wrongly";
  EXPECT_EQ(after_path("hostile_size_zero"), ": its headroom_plugin says it has 0" + rest);
  EXPECT_EQ(after_path("hostile_size_short"), ": its headroom_plugin says it has 40" + rest);
  EXPECT_EQ(after_path("hostile_size_huge"), ": its headroom_plugin says it has 2147483647" + rest);
}

TEST_F(Hostile, HeaderMembers) {
  EXPECT_EQ(after_path("hostile_id_null"),
            ": its id is NULL; an id is a lower-case letter, then lower-case letters, digits or _");
  EXPECT_EQ(after_path("hostile_id_odd"),
            ": its id is 'Not An Id'; an id is a lower-case letter, then lower-case letters, digits or _");
  EXPECT_EQ(after_path("hostile_no_interfaces"), ": its get_interface is NULL: it offers nothing");
}

TEST_F(Hostile, ShortNote) {
  EXPECT_EQ(after_path("hostile_note_short"), " is damaged: its note has 20 bytes instead of 128");
  EXPECT_FALSE(ran());
}

TEST_F(Hostile, NoNoteLoads) {
  EXPECT_FALSE(read_note(path_of("hostile_no_note")).has_value());
  EXPECT_EQ(Library::load(path_of("hostile_no_note")).id(), "hostile");
}

TEST_F(Hostile, FailingInit) {
  EXPECT_EQ(refusal("hostile_init_fails"), "[hostile] this processor lacks AVX-512, which the plugin needs");
  EXPECT_EQ(refusal("hostile_init_fails"), "[hostile] this processor lacks AVX-512, which the plugin needs");
  EXPECT_EQ(refusal("hostile_init_silent"),
            "[hostile] starting the plugin failed with status 99; the plugin gave no reason");
  EXPECT_EQ(refusal("hostile_init_overflows"), "[hostile] starting the plugin failed: " + std::string(504, 'x'));
}

std::string table_refusal(const std::string& name) {
  const Library library = Library::load(path_of(name));
  return sentence_of(Exit::plugin, [&] { library.datasource(); });
}

TEST_F(Hostile, TableSizes) {
  const std::string start = "[hostile] its table headroom.datasource/1 says it has ";
  const std::string rest =
      " bytes; from 152 (ABI 1.0) to 1048576 are allowed: the plugin is damaged or fills struct_size wrongly";
  EXPECT_EQ(table_refusal("hostile_table_zero"), start + "0" + rest);
  EXPECT_EQ(table_refusal("hostile_table_short"), start + "64" + rest);
  EXPECT_EQ(table_refusal("hostile_table_huge"), start + "4294967295" + rest);
}

TEST_F(Hostile, NullSlot) {
  EXPECT_EQ(table_refusal("hostile_slot_null"),
            "[hostile] its table headroom.datasource/1 has no read: this function is required");
}

TEST_F(Hostile, MalformedOptions) {
  const std::string start = "[hostile] its option table is malformed: ";
  EXPECT_EQ(table_refusal("hostile_options_endless"), start + "its tables nest deeper than 8");
  EXPECT_EQ(table_refusal("hostile_options_odd_type"),
            start + "option 'colour' has type 12, which this headroom does not know");
  EXPECT_EQ(table_refusal("hostile_options_twins"), start + "it declares 'twin' twice");
}

TEST_F(Hostile, NeitherSourceNorError) {
  const Library library = Library::load(path_of("hostile_nothing"));
  EXPECT_EQ(sentence_of(Exit::plugin, [&] { Source::open(library, {}); }),
            "[hostile] opening the data source gave neither a source nor an error");
}

TEST_F(Hostile, ThrowingEntries) {
  const Library library = Library::load(path_of("throwing"));
  const std::string rest = "): nothing may be thrown across the boundary; this is a bug of the plugin";
  EXPECT_EQ(sentence_of(Exit::plugin, [&] { Source::open(library, {}); }),
            "[throwing] the plugin threw an exception out of open() (no such thing as a file" + rest);
  EXPECT_EQ(sentence_of(Exit::plugin, [&] { library.state(); }),
            "[throwing] the plugin threw an exception out of get_interface() (not a std::exception" + rest);
  EXPECT_NE(refusal("throwing_load").find("cannot be loaded: it threw an exception meanwhile (too early)"),
            std::string::npos);
  EXPECT_EQ(refusal("throwing_init"), "[throwing] the plugin threw an exception out of init() (not today" + rest);
}

TEST_F(Hostile, FromTheFuture) {
  const Library library = Library::load(path_of("hostile_future"));
  EXPECT_EQ(library.plugin().abi_minor, 999);
  EXPECT_GT(library.datasource()->struct_size, sizeof(hr_datasource));
  EXPECT_EQ(library.model_torch(), nullptr);
}

TEST_F(Hostile, NeedsTheFuture) {
  const std::string rest =
      ": plugin 'hostile' needs plugin ABI 1.999 or newer; this headroom speaks ABI 1.0: update headroom, or use an "
      "older version of the plugin";
  EXPECT_EQ(after_path("hostile_future_needed"), rest);
  EXPECT_FALSE(ran());
  EXPECT_EQ(after_path("hostile_future_needed_no_note"), rest);
}

TEST_F(Hostile, WrongTorch) {
  EXPECT_EQ(after_path("hostile_torch_tag"),
            ": plugin 'hostile' needs LibTorch, which this program does not load: it opens in headroom-train only");
  set_host_torch_tag("2.13.0 | cxx11=1 | gxxabi=1017");
  const std::string differs =
      ": plugin 'hostile' was built with LibTorch 1.0.0 | cxx11=0 | gxxabi=1000; this headroom runs LibTorch 2.13.0 | "
      "cxx11=1 | "
      "gxxabi=1017: rebuild the plugin with the LibTorch and compiler of this headroom";
  EXPECT_EQ(after_path("hostile_torch_tag"), differs);
  EXPECT_FALSE(ran());
  EXPECT_EQ(after_path("hostile_torch_tag_no_note"), differs);
  EXPECT_EQ(after_path("hostile_torch_untagged"),
            ": plugin 'hostile' links LibTorch but does not say which: build it with headroom/model.hpp");
}

TEST_F(Hostile, NotAPlugin) {
  EXPECT_EQ(after_path("hostile_symbol_missing"),
            " is not a Headroom plugin: it does not export headroom_plugin (build it with headroom_add_plugin)");
  EXPECT_THAT(after_path("hostile_unresolved"), HasSubstr(" cannot be loaded: "));
  EXPECT_THAT(after_path("hostile_unresolved"), HasSubstr("undefined symbol: not_defined_anywhere"));
  EXPECT_THAT(refusal("there_is_no_such_file"),
              EndsWith("there_is_no_such_file.so cannot be loaded: No such file or directory"));
}

}  // namespace
}  // namespace headroom
