// The order follows from how the data is stored, and the grouped one decodes a chunk few times.

#include <gtest/gtest.h>
#include <set>

#include "../arrays/h5_files.hpp"
#include "arrays/array_session.hpp"
#include "arrays/arrays.hpp"
#include "arrays/chunk_cache.hpp"
#include "config/experiment.hpp"
#include "data/order.hpp"

namespace headroom {
namespace {

constexpr hsize_t rows = 20'000, chunk_rows = 100;

class StoredLayoutTest : public TemporaryFolder {
 protected:
  // 'plain' is contiguous, 'packed' has chunks of 800 bytes with filters.
  std::string file() {
    const Hdf5Lock lock;
    const std::string path = (folder_ / "a.h5").string();
    const Handle file = create_file(path);
    std::vector<double> values(rows);
    for (size_t i = 0; i < rows; ++i) values[i] = static_cast<double>(i);
    write_dataset(file.get(), "plain", H5T_IEEE_F64LE, {rows}, values);
    write_dataset(file.get(), "packed", H5T_IEEE_F64LE, {rows}, values, {chunk_rows}, 4);
    return path;
  }
};

TEST_F(StoredLayoutTest, CountsWhatIsOpenedOnce) {
  const std::string path = file();
  const OpenArray before(path, "packed");
  LayoutCensus census(ArraySession::of_process());
  EXPECT_EQ(census.total().datasets, 0u);
  for (int i = 0; i < 3; ++i) OpenArray(path, "packed");
  OpenArray(path, "/packed");
  const StoredLayout packed = census.total();
  EXPECT_EQ(packed.datasets, 1u);
  EXPECT_EQ(packed.bytes, rows * sizeof(double));
  EXPECT_EQ(packed.compressed_bytes, packed.bytes);
  EXPECT_EQ(packed.largest_chunk_bytes, 800u);
  EXPECT_TRUE(packed.mostly_compressed());
  OpenArray(path, "plain");
  EXPECT_EQ(census.total().bytes, 2 * packed.bytes);
  EXPECT_EQ(census.total().compressed_bytes, packed.bytes);
  EXPECT_FALSE(census.total().mostly_compressed()) << "half is not most";
}

TEST_F(StoredLayoutTest, AutoIsGroupedWhereMostBytesAreInCompressedChunks) {
  DataSection data;
  const StoredLayout packed{2, 152'000'000, 152'000'000, 31'312}, plain{2, 152'000'000, 0, 0};
  const OrderChoice grouped = choose_order(data, packed, 1'000'000);
  EXPECT_EQ(grouped.shuffle, Shuffle::grouped);
  EXPECT_EQ(grouped.name, "grouped");
  EXPECT_EQ(grouped.grouping.runs, 32u);
  EXPECT_EQ(grouped.grouping.run_length, 2048u) << "never longer";
  EXPECT_EQ(choose_order(data, plain, 1'000'000).shuffle, Shuffle::global);
  EXPECT_EQ(choose_order(data, {}, 1'000'000).name, "global");
  data.chunk_cache_size_bytes = 0;
  EXPECT_EQ(choose_order(data, packed, 1'000'000).shuffle, Shuffle::grouped) << "no memory setting counts";
  EXPECT_EQ(choose_order(data, packed, 40'000).grouping.run_length, 137u) << "3800 bytes a sample: 16 MiB of 32 runs";
  EXPECT_EQ(choose_order(data, packed, 10).grouping.run_length, 1u);
  data.grouped = {8, 100};
  EXPECT_EQ(choose_order(data, packed, 40'000).grouping.runs, 8u);
  EXPECT_EQ(choose_order(data, packed, 40'000).grouping.run_length, 100u);
  data.shuffle = "sequential";
  EXPECT_EQ(choose_order(data, packed, 40'000).shuffle, Shuffle::sequential);
}

TEST_F(StoredLayoutTest, RunsAreGroupsOfTheSourceWhereNothingElseSaysHowLong) {
  DataSection data;
  data.shuffle = "grouped";
  data.grouped.runs = 3;
  const uint64_t bytes = 2112 * (uint64_t{128} << 20);
  const StoredLayout frames{3, bytes, 0, 0}, packed_frames{3, bytes, bytes, 1 << 20};
  const StoredLayout windows{2, 152'000'000, 0, 0}, packed_windows{2, 152'000'000, 152'000'000, 31'312};
  const OrderChoice choice = choose_order(data, frames, 2112, 22);
  EXPECT_EQ(choice.grouping.run_length, 96u);
  EXPECT_EQ(order_line(data, choice, frames),
            "data.shuffle is \"grouped\", data.grouped { runs = 3, run_length = 96 }");
  EXPECT_EQ(order_warning(data, choice), "");
  EXPECT_EQ(choose_order(data, frames, 2112, 2112).grouping.run_length, 1u) << "each sample is a group";
  EXPECT_EQ(choose_order(data, packed_frames, 2112, 22).grouping.run_length, 96u);
  EXPECT_EQ(choose_order(data, windows, 40'000, 2).grouping.run_length, 2048u) << "never longer";
  EXPECT_EQ(choose_order(data, windows, 40'000, 400).grouping.run_length, 100u);
  EXPECT_EQ(choose_order(data, packed_windows, 40'000, 400).grouping.run_length, 1471u) << "what is decoded counts";

  data.grouped.runs = 22;
  EXPECT_EQ(order_warning(data, choose_order(data, frames, 2112, 22)),
            "data.grouped.runs = 22 mixes all runs of 96 samples that are there (22) at a time, which is a global "
            "shuffle: lower it, or data.grouped.run_length");
  data.shuffle = "auto";
  EXPECT_EQ(order_warning(data, choose_order(data, frames, 2112, 22)), "") << "nobody asked for groups";
}

TEST_F(StoredLayoutTest, SaysWhatItDecidedAndWhatToSet) {
  DataSection data;
  const StoredLayout packed{2, 152'000'000, 152'000'000, 31'312}, plain{2, 152'000'000, 0, 0};
  const OrderChoice grouped = choose_order(data, packed, 1'000'000);
  EXPECT_EQ(order_line(data, grouped, packed),
            "data.shuffle is \"grouped\", data.grouped { runs = 32, run_length = 2048 }: most of the data lies in "
            "compressed chunks, which are decoded whole");
  EXPECT_EQ(order_line(data, choose_order(data, plain, 1), plain),
            "data.shuffle is \"global\": most of the data does not lie in compressed chunks");
  EXPECT_EQ(order_warning(data, grouped), "");
  data.chunk_cache_size_bytes = 4 << 20;
  EXPECT_EQ(order_warning(data, grouped),
            "data.grouped mixes about 10.5 MiB of decoded chunks at a time, more than data.chunk_cache_size = 4.0 MiB: "
            "chunks are decoded several times an epoch; raise data.chunk_cache_size, or lower data.grouped.runs or "
            "data.grouped.run_length");
  data.shuffle = "global";
  EXPECT_EQ(order_line(data, choose_order(data, packed, 1), packed), "") << "nothing was left to decide";
}

// Windows of 50 records, one from every record on, in both orders under the same budget.
TEST_F(StoredLayoutTest, GroupedReadsNeighboursTogether) {
  const std::string path = file();
  const OpenArray array(path, "packed");
  constexpr uint64_t window = 50, windows = rows - window + 1;
  const auto decoded = [&](Shuffle shuffle) {
    ArraySession::of_process()->set_chunk_cache_limit(0);  // empty
    ArraySession::of_process()->set_chunk_cache_limit(20 * 800);
    const uint64_t before = ArraySession::of_process()->chunks()->statistics().misses;
    const Order order(shuffle, windows, 0, 0, {4, 200});
    std::vector<double> values(window);
    for (uint64_t i = 0; i < windows; ++i) {
      const uint64_t start = order.at(i), count = window;
      const hr_array_target target{HR_WHOLE, {kDLFloat, 64, 1}, values.data(), 0};
      EXPECT_EQ(arrays_service().read_box(array.get(), &start, &count, &target, 1, nullptr), HR_OK);
      EXPECT_EQ(values[window - 1], static_cast<double>(start + window - 1));
    }
    return ArraySession::of_process()->chunks()->statistics().misses - before;
  };
  const uint64_t grouped = decoded(Shuffle::grouped), global = decoded(Shuffle::global);
  ArraySession::of_process()->set_chunk_cache_limit(32 << 20);
  EXPECT_LE(grouped, 4 * rows / chunk_rows) << "a chunk is of at most four runs";
  EXPECT_GT(global, 20 * grouped);
}

}  // namespace
}  // namespace headroom
