// What `headroom data convert --from` writes is what this source reads, with the names of its channels.
#include "hdf5_source.hpp"
#include "imports/import_file.hpp"

namespace headroom {
namespace {

class ImportedFiles : public Hdf5Folder {};

TEST_F(ImportedFiles, ATableOfText) {
  std::string text = "time,emg_0,emg_1,elbow\n";
  for (int i = 0; i < 100; ++i)
    text += std::to_string(i) + "," + std::to_string(2 * i) + "," + std::to_string(-i) + ",0.5\n";
  write_text(folder_ / "a.csv", text);
  import_file(folder_ / "a.csv", folder_ / "a.hdf5",
              {ImportFormat::csv, {column_group("emg=emg_*"), column_group("angle=elbow")}}, [](uint64_t, uint64_t) {});
  const auto source = open_hdf5(folder_ / "a.hdf5", R"(
window_size = 10
stride = 10
fields = [
  { name = "emg", dataset = "emg", normalize = true, channel_names_attribute = "channel_names" },
  { name = "angle", dataset = "angle", channel_names_attribute = "channel_names", unit = "rad" },
])");
  EXPECT_EQ(source->length(0), 10u);
  ASSERT_EQ(source->fields()[0].channels.size(), 2u);
  EXPECT_EQ(source->fields()[0].channels[1].name, "emg_1");
  EXPECT_EQ(source->fields()[1].channels[0].name, "elbow");
  const Sample sample = read_sample(*source, 3);
  const auto emg = values<float>(sample, "emg");
  EXPECT_EQ(emg[0], 60.0f);
  EXPECT_EQ(emg[19], -39.0f);
  EXPECT_EQ(values<float>(sample, "angle")[9], 0.5f);
}

}  // namespace
}  // namespace headroom
