// 1.0 against a made-up 1.1, from both sides. Behind what a side of 1.0 fills lies a value that nobody may read: these
// tests fail where HR_HAS always says yes.
#include <gtest/gtest.h>

#include "headroom/sdk/fields.hpp"
#include "host_1_1.h"
#include "plugins/source.hpp"

namespace headroom {
namespace {

constexpr int64_t poison = 666;

int32_t not_cancelled(const hr_host*) noexcept { return 0; }
int64_t deadline(const hr_host*) noexcept { return poison; }

// A host's hr_cancel of 1.1. Of release 1.0 when struct_size ends before the last member.
struct CancelOf11 {
  hr_cancel table;
  int64_t (*deadline_ms)(const hr_host*) noexcept;
};
CancelOf11 cancel{{sizeof(hr_cancel), 0, not_cancelled}, deadline};

const void* get_service(const hr_host*, const char* id) noexcept {
  return std::string_view(id) == HR_CANCEL ? &cancel : nullptr;
}
const hr_host host{sizeof(hr_host), 1, 0, "test", "1.0", nullptr, get_service};

std::string path_of(const std::string& name) { return HEADROOM_TEST_PLUGIN_DIR "/" + name + ".so"; }

const hr_datasource& table_of(const std::string& name) { return *Library::load(path_of(name)).datasource(); }

// Opened without the runner's own host.
struct Opened {
  const hr_datasource& api;
  hr_source* source = nullptr;

  explicit Opened(const std::string& name) : api(table_of(name)) {
    hr_value samples{HR_I64, 1, 1, {.i64 = 4}};  // the only option that one of the plugins has
    EXPECT_EQ(api.open(&host, &samples, &source, nullptr), HR_OK);
  }
  Opened(const Opened&) = delete;
  Opened& operator=(const Opened&) = delete;
  ~Opened() { api.close(source); }

  int64_t sample() const {
    int64_t value = 0, shape = 1;
    const uint64_t index = 0, key = 0;
    const DLTensor slot{&value, {kDLCPU, 0}, 1, sdk::i64, &shape, nullptr, 0};
    const hr_read request{sizeof(hr_read), 0, 0, 1, 1, &index, &key, &slot};
    hr_reader* reader = nullptr;
    EXPECT_EQ(api.reader_open(source, &reader, nullptr), HR_OK);
    EXPECT_EQ(api.read(reader, &request, nullptr), HR_OK);
    api.reader_close(reader);
    return value;
  }
};

class Release11 : public testing::Test {
 protected:
  void SetUp() override { cancel.table.struct_size = sizeof(hr_cancel); }
};

TEST_F(Release11, ItsPluginRunsInThisHost) {
  const Library library = Library::load(path_of("source_1_1"));
  EXPECT_EQ(library.plugin().abi_minor, 1);
  EXPECT_GT(library.datasource()->struct_size, sizeof(hr_datasource));
  const auto source = Source::open(library, {});
  EXPECT_EQ(source->fields().at(0).unit, "ms");
  int64_t value = 0, shape = 1;
  const DLTensor slot{&value, {kDLCPU, 0}, 1, sdk::i64, &shape, nullptr, 0};
  const uint64_t index[] = {0}, key[] = {0};
  source->reader().read(0, index, key, false, {&slot, 1});
  EXPECT_EQ(value, -1);
}

TEST_F(Release11, ItsPluginReadsNoFurtherThanAServiceOf10) {
  EXPECT_EQ(Opened("source_1_1").sample(), -1);
  cancel.table.struct_size = sizeof(CancelOf11);
  EXPECT_EQ(Opened("source_1_1").sample(), poison) << "a host of 1.1 has it";
}

TEST_F(Release11, ItsPluginWritesNoFurtherThanTheRoomOf10) {
  struct {
    hr_field field{};
    int64_t beyond = poison;
  } room;
  for (const char* name : {"source_1_1", "c_source_1_1"}) {
    SCOPED_TRACE(name);
    const Opened opened(name);
    room.field.struct_size = sizeof(hr_field);
    ASSERT_EQ(opened.api.field(opened.source, 0, &room.field, nullptr), HR_OK);
    EXPECT_EQ(room.field.struct_size, sizeof(hr_field));
    EXPECT_EQ(room.beyond, poison);
  }
}

TEST_F(Release11, ItsHostReadsNoFurtherThanATableOf10) {
  static bool prefetched;
  struct {
    hr_datasource table;
    void (*prefetch)(hr_reader*) noexcept;
  } of_1_0{table_of("c_source_1_0"), [](hr_reader*) noexcept { prefetched = true; }};
  ASSERT_EQ(of_1_0.table.struct_size, sizeof(hr_datasource));
  EXPECT_EQ(host_1_1_prefetches(&of_1_0.table), 0);
  EXPECT_FALSE(prefetched);
  of_1_0.table.struct_size = sizeof of_1_0;
  EXPECT_EQ(host_1_1_prefetches(&of_1_0.table), 1);
  EXPECT_EQ(host_1_1_prefetches(&table_of("source_1_1")), 0) << "NULL in a plugin of 1.1 is absent too";
}

TEST_F(Release11, ItsHostTakesAFieldOf10) {
  const Opened old("c_source_1_0"), recent("source_1_1");
  EXPECT_EQ(host_1_1_precision(&old.api, old.source), -1.0);
  EXPECT_EQ(host_1_1_precision(&recent.api, recent.source), 0.0);
}

TEST_F(Release11, ItsFieldsStrideByTheirOwnSize) {
  struct {
    hr_field field{};
    int64_t precision = poison;
  } fields[2];
  fields[0].field.struct_size = fields[1].field.struct_size = sizeof fields[0];
  fields[0].field.name = "a";
  fields[1].field.name = "b";
  EXPECT_EQ(sdk::Fields(&fields[0].field, 2)[1].name, "b");
}

TEST_F(Release11, AStructOf10IsCopiedAsFarAsItGoes) {
  struct Longer {
    uint32_t struct_size = 0;
    uint32_t flags = 0;
    int64_t later = 0;
  };
  Longer given{8, 7, poison};
  Longer copy = sdk::load(given);
  EXPECT_EQ(copy.struct_size, 8u);
  EXPECT_EQ(copy.flags, 7u);
  EXPECT_EQ(copy.later, 0);
  given.struct_size = 4096;
  EXPECT_EQ(sdk::load(given).struct_size, sizeof(Longer));
  EXPECT_EQ(sdk::load(given).later, poison);
}

}  // namespace
}  // namespace headroom
