// A C plugin compiled against the header of release 1.0, as it shipped, works in this host.
#include <cmath>
#include <gtest/gtest.h>

#include "plugins/source.hpp"

namespace headroom {
namespace {

TEST(FrozenPlugin, OpensAndReads) {
  const Library library = Library::load(HEADROOM_TEST_PLUGIN_DIR "/c_source_1_0.so");
  EXPECT_EQ(library.id(), "c_source");
  const OptionTable table = to_option_table(library.datasource()->options);
  const auto source = Source::open(library, check_options(table, nullptr, "data.options", "c_source"));
  EXPECT_EQ(source->length(0), 64u);
  ASSERT_EQ(source->fields().size(), 1u);
  EXPECT_EQ(source->fields()[0].name, "wave");
  EXPECT_EQ(source->fields()[0].shape, std::vector<int64_t>{16});
  EXPECT_EQ(source->fields()[0].unit, "V");
  EXPECT_EQ(source->cost(0, 3), 1.0);  // the slot is NULL: all alike

  alignas(64) float wave[2 * 16];
  int64_t shape[] = {2, 16};
  const DLTensor slot{wave, {kDLCPU, 0}, 2, source->fields()[0].dtype, shape, nullptr, 0};
  const uint64_t index[] = {0, 8}, key[] = {0, 0};
  source->reader().read(0, index, key, false, {&slot, 1});
  EXPECT_NEAR(wave[0], 0.0, 1e-6);
  EXPECT_NEAR(wave[4], 1.0, 1e-6);
  EXPECT_NEAR(wave[16], std::sqrt(0.5), 1e-6);
}

}  // namespace
}  // namespace headroom
