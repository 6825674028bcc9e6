// Windows, masks and samples exactly as the reference's: golden data cases with float64 and float32 angles. The second
// differs in nothing else and is read where the shared golden folder lies beside the source tree.
#include <cstring>
#include <nlohmann/json.hpp>

#include "emg_hdf5/windows.hpp"
#include "emg_source.hpp"
#include "record/safetensors.hpp"

namespace headroom {
namespace {

// The recording (.hdf5) or what is expected of it (.safetensors), of the case "f64" or "f32".
std::filesystem::path golden(const std::string& angles, const std::string& ending) {
  const std::filesystem::path tree = HEADROOM_SOURCE_DIR, name = "data_case_" + angles + "angles" + ending;
  const auto ours = tree / "tests/golden/tds_lstm" / name;
  return std::filesystem::exists(ours) ? ours : tree.parent_path() / "shared/golden/tds_lstm" / name;
}

bool is_there(const std::string& angles) { return std::filesystem::exists(golden(angles, ".hdf5")); }

constexpr const char* kNotThere = "this case is not in tests/golden, and there is no ../shared beside the source tree";

struct Case {
  std::string name, options;
  emg_hdf5::WindowShape shape;
};

void PrintTo(const Case& one, std::ostream* stream) { *stream << one.name; }

const Case kCases[] = {
    {"all_W400", "stride = 400\nskip_ik_failures = false", {400, 400, 0, 0}},
    {"all_W400_S150_pad", "stride = 150\nskip_ik_failures = false\npadding = [100, 50]", {400, 150, 100, 50}},
    {"skip_W400", "stride = 400", {400, 400, 0, 0}},
    {"skip_W400_S200", "stride = 200", {400, 200, 0, 0}},
};

class Golden : public testing::TestWithParam<std::tuple<std::string, Case>> {
 protected:
  void SetUp() override {
    if (!is_there(std::get<0>(GetParam()))) GTEST_SKIP() << kNotThere;
  }
  std::filesystem::path recording() const { return golden(std::get<0>(GetParam()), ".hdf5"); }
  SafetensorsFile expected() const { return SafetensorsFile(golden(std::get<0>(GetParam()), ".safetensors")); }
  const Case& the_case() const { return std::get<1>(GetParam()); }
  std::shared_ptr<const Source> source() const {
    return open_emg(recording(), "window_size = 400\n" + the_case().options);
  }
};

struct Row {
  int64_t begin, end, length, offset, block_end;
};

TEST_P(Golden, BlocksAreTheReferences) {
  const SafetensorsFile file = expected();
  const auto facts = nlohmann::json::parse(file.metadata().at(the_case().name));
  std::vector<emg_hdf5::Block> expected_blocks;
  for (const auto& block : facts["blocks"]) expected_blocks.push_back({block[0], block[1]});
  const auto mask = values<uint8_t>(file, "expect/no_ik_failure");
  emg_hdf5::BlockScanner scanner(400);
  scanner.add(mask);
  const auto found =
      the_case().name.starts_with("skip") ? scanner.finish() : std::vector<emg_hdf5::Block>{{0, mask.size()}};
  EXPECT_EQ(found, expected_blocks);

  emg_hdf5::WindowTable table(the_case().shape);
  for (const auto& block : found) table.add(0, block);
  ASSERT_EQ(table.length(), facts["len"].get<uint64_t>());
  const auto rows = values<Row>(file, "expect/windows/" + the_case().name);
  ASSERT_EQ(rows.size(), table.length());
  for (uint64_t i = 0; i < rows.size(); ++i) {
    const emg_hdf5::Window window = table.at(i);
    const emg_hdf5::Slice slice = emg_hdf5::slice_of(window.start, the_case().shape, mask.size());
    EXPECT_EQ(static_cast<int64_t>(window.start), rows[i].offset);
    EXPECT_EQ(static_cast<int64_t>(window.block_end), rows[i].block_end);
    EXPECT_EQ(static_cast<int64_t>(slice.begin), rows[i].begin);
    EXPECT_EQ(static_cast<int64_t>(slice.end), rows[i].end);
    EXPECT_EQ(static_cast<int64_t>(slice.end - slice.begin), rows[i].length);
  }
}

// Every window holds the records the reference reads; context that does not exist is zero and not valid.
TEST_P(Golden, SamplesAreTheRecords) {
  constexpr uint64_t records = 5000, channels = 16, joints = 20;
  const auto opened = source();
  const SafetensorsFile file = expected();
  const auto rows = values<Row>(file, "expect/windows/" + the_case().name);
  const auto mask = values<uint8_t>(file, "expect/no_ik_failure");
  ASSERT_EQ(opened->length(0), rows.size());

  const sdk::Host services(host());
  const sdk::Array array(services, recording(), "/emg2pose/timeseries");
  std::vector<float> emg(records * channels), angles(records * joints);
  const hr_array_target targets[] = {sdk::target(emg.data(), array.member("emg")),
                                     sdk::target(angles.data(), array.member("joint_angles"))};
  array.read_rows(0, records, targets);

  const auto& shape = the_case().shape;
  for (uint64_t i = 0; i < rows.size(); ++i) {
    const EmgSample sample = read_sample(*opened, i, 17 * i);
    ASSERT_EQ(sample.valid.size(), shape.samples());
    for (uint64_t p = 0; p < shape.samples(); ++p) {
      const int64_t record = rows[i].offset - static_cast<int64_t>(shape.left) + static_cast<int64_t>(p);
      const bool there = record >= rows[i].begin && record < rows[i].end;
      ASSERT_EQ(sample.valid[p], there ? mask[record] : 0) << "window " << i << " position " << p;
      for (uint64_t c = 0; c < channels; ++c)
        ASSERT_EQ(sample.emg[p * channels + c], there ? emg[record * channels + c] : 0.0f);
      for (uint64_t j = 0; j < joints; ++j)
        ASSERT_EQ(sample.angles[p * joints + j], there ? angles[record * joints + j] : 0.0f);
    }
  }
}

std::string case_name(const testing::TestParamInfo<std::tuple<std::string, Case>>& info) {
  return std::get<0>(info.param) + "_" + std::get<1>(info.param).name;
}

INSTANTIATE_TEST_SUITE_P(EmgHdf5, Golden, testing::Combine(testing::Values("f32", "f64"), testing::ValuesIn(kCases)),
                         case_name);

// The reference's own item 1 of skip_W400: [channels, time].
class GoldenItem : public testing::TestWithParam<std::string> {};

TEST_P(GoldenItem, IsTheReferences) {
  if (!is_there(GetParam())) GTEST_SKIP() << kNotThere;
  const SafetensorsFile file(golden(GetParam(), ".safetensors"));
  const EmgSample sample = read_sample(*open_emg(golden(GetParam(), ".hdf5"), "window_size = 400\nstride = 400"), 1);
  const auto emg = values<float>(file, "expect/item1/emg");
  std::vector<double> angles;
  if (GetParam() == "f64")
    angles = values<double>(file, "expect/item1/joint_angles");
  else
    for (const float x : values<float>(file, "expect/item1/joint_angles")) angles.push_back(x);
  for (std::size_t t = 0; t < 400; ++t) {
    for (std::size_t c = 0; c < 16; ++c) ASSERT_EQ(sample.emg[t * 16 + c], emg[c * 400 + t]);
    for (std::size_t j = 0; j < 20; ++j) ASSERT_EQ(sample.angles[t * 20 + j], static_cast<float>(angles[j * 400 + t]));
  }
}

INSTANTIATE_TEST_SUITE_P(EmgHdf5, GoldenItem, testing::Values("f32", "f64"));

}  // namespace
}  // namespace headroom
