// Samples of datasources in Rust: those of the C source, and rows that the host read for them. Panics are bugs of the
// plugin.
#include "../datasources/plugin_source.hpp"
#include "h5_files.hpp"

namespace headroom {
namespace {

namespace fs = std::filesystem;

const fs::path example = HEADROOM_RUST_DIR "/examples/rust_source/build/release/rust_source.so";
const fs::path probe = HEADROOM_RUST_DIR "/tests/rust/probe/build/release/rust_probe.so";

class RustSamples : public TemporaryFolder {
 protected:
  void SetUp() override {
    if (!fs::exists(example)) GTEST_SKIP() << "there was no cargo to build Rust with; Debian has it as cargo";
    TemporaryFolder::SetUp();
    register_data_services();
    const Hdf5Lock lock;
    const Handle file = create_file(folder_ / "values.h5");
    std::vector<double> values;
    for (int i = 0; i < 20 * 3; ++i) values.push_back(0.25 + i);
    write_dataset(file.get(), "values", H5T_IEEE_F64LE, {20, 3}, values);
  }

  std::shared_ptr<const Source> open(const fs::path& library, const std::string& options) const {
    toml::table table = toml::parse(options);
    const Library plugin = Library::load(library);
    const OptionTable keys = to_option_table(plugin.datasource()->options);
    return Source::open(plugin, check_options(keys, &table, "data.options", "the data source"));
  }
  std::shared_ptr<const Source> open_probe(const std::string& options) const {
    return open(probe, "path = \"" + (folder_ / "values.h5").string() + "\"\n" + options);
  }
};

std::vector<Sample> read_all(const Source& source) {
  std::vector<uint64_t> index(source.length(0)), key(index.size(), 7);
  for (size_t i = 0; i < index.size(); ++i) index[i] = i;
  Reader reader = source.reader();
  return read_fields(reader, source, 0, index, key, false);
}

TEST_F(RustSamples, AreThoseOfTheSourceInC) {
  const auto rust = open(example, "samples = 100"),
             c = open(HEADROOM_TEST_PLUGIN_DIR "/c_source_1_0.so", "samples = 100");
  ASSERT_EQ(rust->length(0), 100u);
  EXPECT_EQ(rust->fields()[0].unit, "V");
  EXPECT_EQ(rust->fields()[0].axes, std::vector<std::string>{"time"});
  EXPECT_EQ(rust->fields()[0].sample_rate_hz, 16.0);
  EXPECT_FALSE(rust->augments());
  const std::vector<Sample> ours = read_all(*rust), theirs = read_all(*c);
  for (size_t i = 0; i < 100; ++i) {
    EXPECT_EQ(values<float>(ours[i], "x"), values<float>(theirs[i], "wave")) << i;
    EXPECT_EQ(values<float>(ours[i], "y").size(), 1u);
  }
}

TEST_F(RustSamples, AreRowsThatTheHostReads) {
  const auto source = open_probe("");
  EXPECT_EQ(source->files(), std::vector{folder_ / "values.h5"});
  const std::vector<Sample> samples = read_all(*source);
  ASSERT_EQ(samples.size(), 20u);
  EXPECT_EQ(values<float>(samples[4], "x"), (std::vector<float>{12.25f, 13.25f, 14.25f}));
  EXPECT_EQ(values<float>(samples[4], "y"), std::vector<float>{39.75f});
}

TEST_F(RustSamples, OfAReaderThatPanickedCanStillBeRead) {
  const auto source = open_probe("panics = \"read\"");
  Reader reader = source->reader();
  const std::string sentence = sentence_of(folder_, Exit::plugin, [&] {
    read_fields(reader, *source, 0, {4, 5}, {0, 0}, false);
  });
  EXPECT_THAT(sentence, testing::HasSubstr("the plugin panicked at src/lib.rs:"));
  EXPECT_THAT(sentence, testing::HasSubstr(": sample 5 is not to be had"));
  EXPECT_EQ(values<float>(read_fields(reader, *source, 0, {6}, {0}, false)[0], "y"), std::vector<float>{57.75f});
}

TEST_F(RustSamples, AreNotThereWhenOpeningFails) {
  EXPECT_THAT(sentence_of(folder_, Exit::plugin, [&] { open_probe("panics = \"open\""); }),
              testing::HasSubstr(": no opening for sample 7"));
  EXPECT_EQ(sentence_of(folder_, Exit::bad_input, [&] { open_probe("refuses = true"); }),
            "[rust_probe] refuses must be false, not true");
  EXPECT_THAT(sentence_of(folder_, Exit::data, [&] { open(probe, "path = \"/nonexistent/values.h5\""); }),
              testing::HasSubstr("/nonexistent/values.h5"));
}

}  // namespace
}  // namespace headroom
