// headroom.array_writer/1: whole files or none, the layouts readers meet, the same bytes every time.

#include <algorithm>
#include <csignal>
#include <cstring>
#include <iterator>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../plugins/process_host.hpp"
#include "arrays/arrays.hpp"
#include "h5_files.hpp"
#include "headroom/datasource.hpp"

namespace headroom {
namespace {

constexpr DLDataType f32{kDLFloat, 32, 1}, f64{kDLFloat, 64, 1}, i64{kDLInt, 64, 1}, boolean{kDLBool, 8, 1};

struct Row {
  double time;
  float emg[2];
  uint8_t valid;
};

class ArrayWriter : public TemporaryFolder {
 protected:
  void SetUp() override {
    TemporaryFolder::SetUp();
    path_ = (folder_ / "out.hdf5").string();
    error_.struct_size = sizeof error_;
  }
  const hr_array_writer& api() { return array_writer_service(); }
  hr_writer* create() {
    hr_writer* writer = nullptr;
    EXPECT_EQ(api().create(nullptr, path_.c_str(), &writer, &error_), HR_OK) << error_.message;
    return writer;
  }
  size_t entries() const {
    return static_cast<size_t>(std::distance(std::filesystem::directory_iterator(folder_), {}));
  }

  std::string path_;
  hr_error error_{};
};

std::vector<hr_array_member> members() {
  std::vector<hr_array_member> all(3);
  all[0] = {sizeof(hr_array_member), 0, {}, "time", f64, offsetof(Row, time)};
  all[1] = {sizeof(hr_array_member), 1, {2}, "emg", f32, offsetof(Row, emg)};
  all[2] = {sizeof(hr_array_member), 0, {}, "valid", boolean, offsetof(Row, valid)};
  return all;
}

hr_array_spec compound(const std::vector<hr_array_member>& all, uint64_t rows, uint64_t chunk, int deflate) {
  hr_array_spec spec{};
  spec.struct_size = sizeof spec;
  spec.ndim = 1;
  spec.dataset = "/emg2pose/timeseries";
  spec.shape[0] = rows;
  spec.chunk[0] = chunk;
  spec.member_count = static_cast<uint32_t>(all.size());
  spec.members = all.data();
  spec.record_bytes = sizeof(Row);
  spec.deflate = deflate;
  return spec;
}

hr_array_spec plain(const char* name, uint64_t rows) {
  hr_array_spec spec{};
  spec.struct_size = sizeof spec;
  spec.ndim = 2;
  spec.dataset = name;
  spec.shape[0] = rows;
  spec.shape[1] = 3;
  spec.dtype = f32;
  return spec;
}

std::vector<Row> rows(size_t count) {
  std::vector<Row> all(count);
  std::memset(all.data(), 0, count * sizeof(Row));
  for (size_t i = 0; i < count; ++i) {
    const auto at = static_cast<float>(i);
    all[i].time = at;
    all[i].emg[0] = at * 2;
    all[i].emg[1] = at * 3;
    all[i].valid = i % 2 == 0 ? 1 : 0;
  }
  return all;
}

class Layouts : public ArrayWriter, public testing::WithParamInterface<std::tuple<uint64_t, uint64_t, int>> {};

TEST_P(Layouts, AppendedRowsComeBack) {
  const auto [length, chunk, deflate] = GetParam();
  const auto all = rows(10);
  const auto described = members();
  const hr_array_spec spec = compound(described, length, chunk, deflate);
  hr_writer* writer = create();
  uint32_t id = 99;
  ASSERT_EQ(api().dataset(writer, &spec, &id, &error_), HR_OK) << error_.message;
  ASSERT_EQ(api().append(writer, id, all.data(), 7, &error_), HR_OK) << error_.message;
  ASSERT_EQ(api().append(writer, id, all.data() + 7, 3, &error_), HR_OK) << error_.message;
  EXPECT_FALSE(std::filesystem::exists(path_)) << "a file that is not finished must not have its name";
  ASSERT_EQ(api().close(writer, 1, &error_), HR_OK) << error_.message;
  EXPECT_EQ(entries(), 1u);

  OpenArray array(path_, "emg2pose/timeseries");
  ASSERT_EQ(array.status(), HR_OK) << array.message();
  hr_array_info info{};
  arrays_service().info(array.get(), &info, nullptr);
  EXPECT_EQ(info.chunk[0], chunk);
  EXPECT_EQ(info.filtered, deflate > 0 ? 1u : 0u);
  EXPECT_EQ(info.element_bytes, 17u) << "records lie packed in the file";
  float emg[10][2];
  uint8_t valid[10];
  ASSERT_EQ(array.read({0}, {10}, {{1, f32, emg, 0}, {2, boolean, valid, 0}}), HR_OK) << array.message();
  for (size_t i = 0; i < 10; ++i) {
    EXPECT_EQ(emg[i][1], all[i].emg[1]);
    EXPECT_EQ(valid[i], all[i].valid);
  }
}

INSTANTIATE_TEST_SUITE_P(All, Layouts,
                         testing::Values(std::tuple{10, 0, 0}, std::tuple{10, 4, 0}, std::tuple{10, 4, 6},
                                         std::tuple{0, 4, 0}, std::tuple{0, 4, 1}));

TEST_F(ArrayWriter, WritesAttributesOfGroupsAndDatasets) {
  hr_writer* writer = create();
  uint32_t id = 0;
  const auto spec = plain("/g/x", 1);
  const float row[3] = {1, 2, 3};
  ASSERT_EQ(api().dataset(writer, &spec, &id, &error_), HR_OK);
  ASSERT_EQ(api().append(writer, id, row, 1, &error_), HR_OK);
  hr_attribute value{sizeof(hr_attribute), HR_F64, 0, 2000.0, ""};
  ASSERT_EQ(api().attribute(writer, "g", "sample_rate", &value, &error_), HR_OK) << error_.message;
  value = {sizeof(hr_attribute), HR_I64, -16, 0, ""};
  ASSERT_EQ(api().attribute(writer, "/g/x", "channels", &value, &error_), HR_OK) << error_.message;
  value = {sizeof(hr_attribute), HR_STRING, 0, 0, "first"};
  ASSERT_EQ(api().attribute(writer, "/", "side", &value, &error_), HR_OK);
  value = {sizeof(hr_attribute), HR_STRING, 0, 0, "l\xC3\xA9"};
  ASSERT_EQ(api().attribute(writer, "/", "side", &value, &error_), HR_OK) << "written again: replaced";
  EXPECT_EQ(api().attribute(writer, "/other", "side", &value, &error_), HR_NOT_FOUND);
  EXPECT_EQ(std::string(error_.message), "'" + path_ + "' has no '/other'; group '/' holds group 'g'");
  ASSERT_EQ(api().close(writer, 1, &error_), HR_OK) << error_.message;

  hr_attribute read{};
  ASSERT_EQ(arrays_service().attribute(nullptr, path_.c_str(), "/g", "sample_rate", &read, nullptr), HR_OK);
  EXPECT_EQ(read.f64, 2000.0);
  ASSERT_EQ(arrays_service().attribute(nullptr, path_.c_str(), "/g/x", "channels", &read, nullptr), HR_OK);
  EXPECT_EQ(read.i64, -16);
  ASSERT_EQ(arrays_service().attribute(nullptr, path_.c_str(), "/", "side", &read, nullptr), HR_OK);
  EXPECT_STREQ(read.string, "l\xC3\xA9");
}

// What the SDK would have to cut, or to write beyond its tables.
TEST_F(ArrayWriter, TheSdkRefusesWhatItsTablesDoNotHold) {
  register_array_services();
  sdk::ArrayWriter writer(sdk::Host(host()), path_);
  const auto sentence = [](auto&& call) -> std::string {
    try {
      call();
      return "no error";
    } catch (const sdk::Error& problem) {
      return problem.what();
    }
  };
  EXPECT_EQ(sentence([&] { writer.attribute("/", "note", sdk::Attribute::of(std::string(511, 'x'))); }), "no error");
  EXPECT_EQ(sentence([&] { writer.attribute("/", "note", sdk::Attribute::of(std::string(512, 'x'))); }),
            "attribute 'note' of '/' would be a string of 512 bytes; at most 511 can be written");
  sdk::ArraySpec spec{.dataset = "x", .shape = {4}, .chunk = {2, 2}};
  EXPECT_EQ(sentence([&] { writer.dataset(spec); }),
            "dataset 'x' has chunks with other axes than itself; give an extent for each axis");
  spec.chunk = {};
  spec.members = {{"m", sdk::f32, std::vector<uint64_t>(9, 1), 0}};
  spec.record_bytes = 4;
  EXPECT_EQ(sentence([&] { writer.dataset(spec); }), "dataset 'x' has a member 'm' of more than 8 axes");
}

TEST_F(ArrayWriter, AStringWithoutAnEndAndRowsWithoutValuesAreRefused) {
  hr_writer* writer = create();
  hr_attribute value{sizeof(hr_attribute), HR_STRING, 0, 0, ""};
  std::fill(std::begin(value.string), std::end(value.string), 'x');
  EXPECT_EQ(api().attribute(writer, "/", "note", &value, &error_), HR_INVALID_ARGUMENT);
  EXPECT_EQ(std::string(error_.message), "attribute 'note' of '/' is a string without an end");
  uint32_t id = 0;
  const auto spec = plain("x", 1);
  ASSERT_EQ(api().dataset(writer, &spec, &id, &error_), HR_OK);
  EXPECT_EQ(api().append(writer, id, nullptr, 1, &error_), HR_INVALID_ARGUMENT);
  EXPECT_EQ(std::string(error_.message), "'/x' of '" + path_ + "' was given rows without values");
  ASSERT_EQ(api().close(writer, 0, &error_), HR_OK);
}

TEST_F(ArrayWriter, WithoutCommitNothingIsLeftAndTheOldFileStays) {
  write_text(path_, "old");
  hr_writer* writer = create();
  uint32_t id = 0;
  const auto spec = plain("x", 2);
  const float row[3] = {1, 2, 3};
  ASSERT_EQ(api().dataset(writer, &spec, &id, &error_), HR_OK);
  ASSERT_EQ(api().append(writer, id, row, 1, &error_), HR_OK);
  EXPECT_EQ(entries(), 2u);
  ASSERT_EQ(api().close(writer, 0, &error_), HR_OK);
  EXPECT_EQ(entries(), 1u);
  EXPECT_EQ(read_text(path_), "old");
}

// As two runs of one process may.
TEST_F(ArrayWriter, TwoWritersOfOneFileStayOutOfEachOther) {
  hr_writer* writers[2] = {create(), create()};
  EXPECT_EQ(entries(), 2u);
  const auto spec = plain("x", 1);
  for (int i = 0; i < 2; ++i) {
    uint32_t id = 0;
    const float row[3] = {static_cast<float>(i), 2, 3};
    ASSERT_EQ(api().dataset(writers[i], &spec, &id, &error_), HR_OK) << error_.message;
    ASSERT_EQ(api().append(writers[i], id, row, 1, &error_), HR_OK) << error_.message;
  }
  for (hr_writer* writer : writers) ASSERT_EQ(api().close(writer, 1, &error_), HR_OK) << error_.message;
  EXPECT_EQ(entries(), 1u);
  OpenArray array(path_, "x");
  float row[3] = {};
  ASSERT_EQ(array.read({0, 0}, {1, 3}, {{HR_WHOLE, f32, row, 0}}), HR_OK) << array.message();
  EXPECT_EQ(row[0], 1.0f) << "the one that was finished last";
}

TEST_F(ArrayWriter, MissingAndSurplusRowsAreErrors) {
  hr_writer* writer = create();
  uint32_t id = 0;
  const auto spec = plain("x", 2);
  const float values[9] = {};
  ASSERT_EQ(api().dataset(writer, &spec, &id, &error_), HR_OK);
  EXPECT_EQ(api().append(writer, id, values, 3, &error_), HR_INVALID_ARGUMENT);
  EXPECT_EQ(std::string(error_.message), "'/x' of '" + path_ + "' was declared with 2 rows; 0 + 3 are too many");
  ASSERT_EQ(api().append(writer, id, values, 1, &error_), HR_OK);
  EXPECT_EQ(api().close(writer, 1, &error_), HR_INVALID_ARGUMENT);
  EXPECT_EQ(std::string(error_.message), "'/x' of '" + path_ + "' was declared with 2 rows and got 1");
  EXPECT_EQ(entries(), 0u);
}

TEST_F(ArrayWriter, RefusesWhatCannotBeWritten) {
  hr_writer* writer = create();
  uint32_t id = 0;
  auto spec = plain("x", 0);
  EXPECT_EQ(api().dataset(writer, &spec, &id, &error_), HR_INVALID_ARGUMENT);
  EXPECT_EQ(std::string(error_.message),
            "'/x' of '" + path_ + "' has an unknown length and no chunk shape; give one of them");
  spec = plain("x", 1);
  spec.deflate = 4;
  EXPECT_EQ(api().dataset(writer, &spec, &id, &error_), HR_INVALID_ARGUMENT);
  EXPECT_EQ(std::string(error_.message), "'/x' of '" + path_ + "' is to be compressed without a chunk shape; give one");
  spec = plain("x", 1);
  spec.dtype = {kDLFloat, 16, 1};
  EXPECT_EQ(api().dataset(writer, &spec, &id, &error_), HR_INVALID_ARGUMENT);
  EXPECT_EQ(api().append(writer, 5, nullptr, 1, &error_), HR_INVALID_ARGUMENT);
  ASSERT_EQ(api().close(writer, 0, &error_), HR_OK);

  path_ = (folder_ / "missing" / "out.hdf5").string();
  EXPECT_EQ(api().create(nullptr, path_.c_str(), &writer, &error_), HR_IO);
  EXPECT_EQ(std::string(error_.message), "cannot write '" + path_ + "': folder '" + (folder_ / "missing").string() +
                                             "' does not exist; make it first");
}

TEST_F(ArrayWriter, SameCallsSameBytes) {
  const auto all = rows(10);
  const auto described = members();
  std::string bytes[2];
  for (std::string& content : bytes) {
    hr_writer* writer = create();
    uint32_t id = 0;
    const auto spec = compound(described, 0, 4, 4);
    ASSERT_EQ(api().dataset(writer, &spec, &id, &error_), HR_OK);
    ASSERT_EQ(api().append(writer, id, all.data(), 10, &error_), HR_OK);
    const hr_attribute value{sizeof(hr_attribute), HR_STRING, 0, 0, "left"};
    ASSERT_EQ(api().attribute(writer, "/emg2pose", "side", &value, &error_), HR_OK);
    ASSERT_EQ(api().close(writer, 1, &error_), HR_OK);
    content = read_text(path_);
    if (content.size() > 0 && bytes[1].empty()) sleep(1);  // a time stamp of seconds would show
  }
  EXPECT_GT(bytes[0].size(), 0u);
  EXPECT_TRUE(bytes[0] == bytes[1]);
}

// A full disk, as a limit on file size: a sentence, and nothing left. In a child, which alone gets the limit.
TEST_F(ArrayWriter, AFullDiskIsASentence) {
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    std::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{1 << 20, 1 << 20};
    setrlimit(RLIMIT_FSIZE, &limit);
    hr_writer* writer = nullptr;
    uint32_t id = 0;
    auto spec = plain("x", 1 << 20);
    const std::vector<float> values(3 << 20);
    if (api().create(nullptr, path_.c_str(), &writer, &error_) != HR_OK) _exit(1);
    hr_status status = api().dataset(writer, &spec, &id, &error_);
    if (status == HR_OK) status = api().append(writer, id, values.data(), 1 << 20, &error_);
    if (status != HR_IO || std::strstr(error_.message, "cannot write '") == nullptr) _exit(2);
    if (api().close(writer, 0, &error_) != HR_OK) _exit(3);
    _exit(entries() == 0 ? 0 : 4);
  }
  int status = -1;
  waitpid(child, &status, 0);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace headroom
