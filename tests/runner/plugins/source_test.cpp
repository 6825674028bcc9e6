// Sources that contradict themselves: each is refused with what is wrong.
#include "plugins/source.hpp"

#include <functional>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "error.hpp"
#include "plugins/host.hpp"

namespace headroom {
namespace {

// What the fake below says; each test changes one thing.
struct Claims {
  std::vector<hr_field> fields;
  std::vector<const char*> splits = {"all"};
  uint64_t length = 10;
  std::vector<hr_group> groups = {{sizeof(hr_group), 0, "a", 0, 4}, {sizeof(hr_group), 0, "b", 4, 6}};
  uint64_t group_count = 0;  // 0: as many as there are
  uint64_t file_count = 1;
  const char* file = nullptr;
  int open_sources = 0;

  Claims() {
    hr_field field{};
    field.struct_size = sizeof field;
    field.name = "x";
    field.dtype = {kDLFloat, 32, 1};
    field.ndim = 2;
    field.shape[0] = 3;
    field.shape[1] = 2;
    field.channel_axis = 1;
    fields = {field};
  }
};

Claims claims;

hr_source* handle() { return reinterpret_cast<hr_source*>(&claims); }

const hr_datasource kFake = {sizeof(hr_datasource),
                             0,
                             nullptr,
                             [](const hr_host*, const hr_value*, hr_source** out, hr_error*) noexcept -> hr_status {
                               ++claims.open_sources;
                               *out = handle();
                               return HR_OK;
                             },
                             [](hr_source*) noexcept { --claims.open_sources; },
                             [](const hr_source*) noexcept { return static_cast<uint32_t>(claims.fields.size()); },
                             [](const hr_source*, uint32_t i, hr_field* out, hr_error*) noexcept -> hr_status {
                               return *out = claims.fields[i], HR_OK;
                             },
                             [](const hr_source*) noexcept { return static_cast<uint32_t>(claims.splits.size()); },
                             [](const hr_source*, uint32_t i) noexcept { return claims.splits[i]; },
                             [](const hr_source*, uint32_t) noexcept { return claims.length; },
                             [](const hr_source*, uint32_t) noexcept {
                               return claims.group_count != 0 ? claims.group_count : claims.groups.size();
                             },
                             [](const hr_source*, uint32_t, uint64_t i, hr_group* out,
                                hr_error*) noexcept -> hr_status { return *out = claims.groups[i], HR_OK; },
                             nullptr,
                             [](const hr_source*) noexcept { return claims.file_count; },
                             [](const hr_source*, uint64_t) noexcept -> const char* { return claims.file; },
                             [](hr_source*, hr_reader**, hr_error*) noexcept -> hr_status { return HR_OK; },
                             [](hr_reader*) noexcept {},
                             [](hr_reader*, const hr_read*, hr_error*) noexcept -> hr_status { return HR_OK; },
                             nullptr,
                             nullptr};

std::shared_ptr<const Source> open() { return Source::open(kFake, "fake", nullptr); }

std::string refusal() {
  try {
    open();
  } catch (const Error& problem) {
    EXPECT_EQ(problem.exit_code(), Exit::plugin);
    return problem.what();
  }
  return "opened";
}

std::string inconsistent(const std::string& sentence) {
  return "[fake] the source describes itself inconsistently: " + sentence;
}

class Contradiction : public testing::Test {
 protected:
  void SetUp() override { claims = Claims(); }
  void TearDown() override { EXPECT_EQ(claims.open_sources, 0); }  // refused or not, it was closed
};

TEST_F(Contradiction, NoneOpens) {
  const auto source = open();
  EXPECT_EQ(source->length(0), 10u);
  EXPECT_EQ(source->fields()[0].bytes(), 24);
  EXPECT_EQ(dtype_name(source->fields()[0].dtype), "float32");
  EXPECT_THROW(source->files(), Error);
  EXPECT_THROW(source->reader(), Error);
}

TEST_F(Contradiction, Fields) {
  claims.fields[0].dtype = {kDLFloat, 24, 1};
  EXPECT_EQ(refusal(), inconsistent("field 'x' has the unknown dtype float24"));
  claims = Claims();
  claims.fields[0].ndim = 9;
  EXPECT_EQ(refusal(), inconsistent("field 'x' has 9 axes; 0 to 8 are allowed"));
  claims = Claims();
  claims.fields[0].shape[1] = -1;
  EXPECT_EQ(refusal(), inconsistent("field 'x' has -1 elements along axis 1"));
  claims = Claims();
  claims.fields[0].shape[0] = claims.fields[0].shape[1] = int64_t{1} << 40;
  EXPECT_EQ(refusal(), inconsistent("field 'x' has 1099511627776 elements along axis 0"));
  claims = Claims();
  claims.fields[0].channel_axis = 2;
  EXPECT_EQ(refusal(), inconsistent("field 'x' has channel axis 2 of 2 axes"));
  claims = Claims();
  claims.fields[0].name = nullptr;
  EXPECT_EQ(refusal(), inconsistent("its field 0 has no name"));
  claims = Claims();
  claims.fields.push_back(claims.fields[0]);
  EXPECT_EQ(refusal(), inconsistent("it declares field 'x' twice"));
  claims = Claims();
  claims.fields.clear();
  EXPECT_EQ(refusal(), inconsistent("it declares 0 fields; 1 to 1024 are allowed"));
}

TEST_F(Contradiction, Channels) {
  hr_channel channels[2] = {{sizeof(hr_channel), 0, "a", nullptr, 0.0, 1.0},
                            {sizeof(hr_channel), 0, "b", "rad", 0.5, 2.0}};
  claims.fields[0].channels = channels;
  claims.fields[0].channel_count = 3;
  EXPECT_EQ(refusal(), inconsistent("field 'x' describes 3 channels; its channel axis has 2"));
  claims.fields[0].channel_count = 2;
  channels[1].std = 0.0;
  EXPECT_EQ(refusal(), inconsistent("a channel of field 'x' has no usable mean and std"));
}

TEST_F(Contradiction, Splits) {
  claims.splits = {};
  EXPECT_EQ(refusal(), inconsistent("it declares 0 splits; 1 to 64 are allowed"));
  claims.splits = {"train", "train"};
  EXPECT_EQ(refusal(), inconsistent("it declares split 'train' twice"));
  claims.splits = {nullptr};
  EXPECT_EQ(refusal(), inconsistent("its split 0 has no name"));
}

TEST_F(Contradiction, Groups) {
  claims.groups[1].first = 5;
  EXPECT_EQ(refusal(),
            inconsistent("group 1 of split 'all' covers samples [5, 11); groups must tile [0, 10) in order"));
  claims = Claims();
  claims.groups[1].count = UINT64_MAX;
  EXPECT_EQ(refusal(), inconsistent("group 1 of split 'all' covers samples [4, 3); groups must tile [0, 10) in order"));
  claims = Claims();
  claims.groups.pop_back();
  EXPECT_EQ(refusal(), inconsistent("the groups of split 'all' end at sample 4; the split has 10"));
  claims = Claims();
  claims.length = 1;
  EXPECT_EQ(refusal(), inconsistent("split 'all' has 2 groups for 1 samples"));
  claims = Claims();
  claims.length = claims.group_count = UINT64_MAX;
  EXPECT_EQ(refusal(), inconsistent("split 'all' has 18446744073709551615 groups; at most 10000000 are allowed"));
}

TEST_F(Contradiction, FilesWithoutEnd) {
  claims.file_count = UINT64_MAX;
  claims.file = "a.h5";
  try {
    open()->files();
    ADD_FAILURE();
  } catch (const Error& problem) {
    EXPECT_EQ(problem.exit_code(), Exit::plugin);
    EXPECT_STREQ(problem.what(), "[fake] the source names 18446744073709551615 files; at most 10000000 are allowed");
  }
}

}  // namespace
}  // namespace headroom
