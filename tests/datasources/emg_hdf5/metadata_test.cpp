#include "emg_source.hpp"

namespace headroom {
namespace {

class EmgMetadata : public TemporaryFolder {
 protected:
  void SetUp() override {
    TemporaryFolder::SetUp();
    for (const char* name : {"a", "b", "c", "d"})
      write_recording(folder_ / (std::string(name) + ".hdf5"), {.records = 22});
  }
  std::shared_ptr<const Source> open(const std::string& options = "") const {
    return open_emg(folder_, "window_size = 20\n" + options);
  }
  std::string sentence(const std::string& options = "") const {
    return sentence_of(folder_, Exit::bad_input, [&] { open(options); });
  }
  static std::vector<std::string> group_names(const Source& source, uint32_t split) {
    std::vector<std::string> names;
    for (const Group& group : source.groups(split)) names.push_back(group.name);
    return names;
  }
};

TEST_F(EmgMetadata, DividesTheRecordings) {
  write_text(folder_ / "metadata.csv", "split,user,filename\nval,u,c\ntrain,u,d\ntrain,\"u, v\",a.hdf5\n");
  const auto source = open();
  EXPECT_EQ(source->splits(), (std::vector<std::string>{"train", "val"}));
  EXPECT_EQ(group_names(*source, 0), (std::vector<std::string>{"a", "d"}));
  EXPECT_EQ(group_names(*source, 1), (std::vector<std::string>{"c"}));
  EXPECT_THAT(source->files(), testing::UnorderedElementsAre(folder_ / "a.hdf5", folder_ / "c.hdf5", folder_ / "d.hdf5",
                                                             folder_ / "metadata.csv"));
}

TEST_F(EmgMetadata, IsLeftAloneOnDemandAndForOneFile) {
  write_text(folder_ / "metadata.csv", "filename,split\na,train\n");
  EXPECT_EQ(open("splits = \"none\"")->splits(), (std::vector<std::string>{"all"}));
  EXPECT_EQ(open_emg(folder_ / "a.hdf5", "window_size = 20")->splits(), (std::vector<std::string>{"all"}));
}

TEST_F(EmgMetadata, WithoutASplitColumnIsNoDivision) {
  write_text(folder_ / "metadata.csv", "filename,user\na,u\n");
  EXPECT_EQ(open()->splits(), (std::vector<std::string>{"all"}));
  EXPECT_EQ(sentence("splits = \"metadata\""),
            "[emg_hdf5] DIR/metadata.csv:1: there is no column 'split'; set splits = \"none\" to do without");
}

TEST_F(EmgMetadata, MayLieElsewhere) {
  std::filesystem::create_directory(folder_ / "tables");
  write_text(folder_ / "tables/mine.csv", "filename,split\na,train\nb,test\n");
  EXPECT_EQ(open("metadata = '" + (folder_ / "tables/mine.csv").string() + "'")->splits(),
            (std::vector<std::string>{"train", "test"}));
}

TEST_F(EmgMetadata, NamesRecordingsThatAreMissing) {
  write_text(folder_ / "metadata.csv", "filename,split\na,train\nx,train\nb,val\ny,test\n");
  EXPECT_EQ(sentence(),
            "[emg_hdf5] DIR/metadata.csv names 2 of the 4 recordings that are not in DIR, first 'x'; add them, take "
            "out their "
            "rows, or set skip_missing_files = true to train on what is there");
  EXPECT_EQ(open("skip_missing_files = true")->splits(), (std::vector<std::string>{"train", "val"}));
}

TEST_F(EmgMetadata, OfOtherDataIsAnErrorAlsoWhenFilesMayBeMissing) {
  write_text(folder_ / "metadata.csv", "filename,split\nx,train\n");
  EXPECT_THAT(sentence("skip_missing_files = true"),
              testing::HasSubstr("names 1 of the 1 recordings that are not in DIR, first 'x'"));
}

TEST_F(EmgMetadata, WithoutRowsIsAnError) {
  write_text(folder_ / "metadata.csv", "filename,split\n");
  EXPECT_EQ(sentence(), "[emg_hdf5] DIR/metadata.csv names no recording; add rows, or set splits = \"none\"");
}

TEST_F(EmgMetadata, WithABadHeaderNamesWhatIsThere) {
  write_text(folder_ / "metadata.csv", "file,split\na,train\n");
  EXPECT_EQ(sentence(), "[emg_hdf5] DIR/metadata.csv:1: there is no column 'filename'; found file and split");
}

TEST_F(EmgMetadata, WithAnUnknownSplitNamesTheLine) {
  write_text(folder_ / "metadata.csv", "filename,split\na,train\n\nb,valid\n");
  EXPECT_EQ(sentence(), "[emg_hdf5] DIR/metadata.csv:4: split 'valid' of 'b'; allowed are train, val and test");
}

TEST_F(EmgMetadata, WithARaggedRowNamesTheLine) {
  write_text(folder_ / "metadata.csv", "filename,split\na\n");
  EXPECT_EQ(sentence(), "[emg_hdf5] DIR/metadata.csv:2: 1 fields where the header has 2");
}

TEST_F(EmgMetadata, WithAnOpenQuoteNamesTheLine) {
  write_text(folder_ / "metadata.csv", "filename,split\na,train\n\"b,val\n");
  EXPECT_EQ(sentence(), "[emg_hdf5] DIR/metadata.csv: line 3 opens a quote that never ends");
}

TEST_F(EmgMetadata, NamesNoRecordingTwice) {
  write_text(folder_ / "metadata.csv", "filename,split\na,train\na,val\n");
  EXPECT_EQ(sentence(), "[emg_hdf5] DIR/metadata.csv:3: 'a' is named a second time");
}

TEST_F(EmgMetadata, AskedForMustBeThere) {
  EXPECT_EQ(sentence("splits = \"metadata\""),
            "[emg_hdf5] splits = \"metadata\", but there is no metadata.csv in DIR; set metadata to its "
            "path, or splits = \"none\" to have the host divide the recordings");
  EXPECT_EQ(sentence("splits = \"none\"\nmetadata = 'm.csv'"),
            "[emg_hdf5] metadata is set, but splits = \"none\" does not read it; take out one of the two");
}

TEST_F(EmgMetadata, RefusesTwoRecordingsOfOneName) {
  write_text(folder_ / "a.h5", "");
  EXPECT_EQ(sentence(), "[emg_hdf5] DIR/a.h5 and DIR/a.hdf5 are one recording by name; keep one of them");
}

}  // namespace
}  // namespace headroom
