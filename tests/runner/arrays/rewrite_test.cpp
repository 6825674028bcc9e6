// Files written again in another layout: the same values, attributes and links, whatever they held.
#include <gmock/gmock.h>
#include <map>

#include "arrays/hdf5_object.hpp"
#include "arrays/hdf5_rewrite.hpp"
#include "arrays/inspect.hpp"
#include "h5_files.hpp"

namespace headroom {
namespace {

struct Record {
  double time;
  float emg[16];
  char label[5];
};

class Rewriting : public TemporaryFolder {
 protected:
  void SetUp() override {
    TemporaryFolder::SetUp();
    from_ = (folder_ / "a.hdf5").string();
    to_ = (folder_ / "b.hdf5").string();
  }

  static constexpr size_t kRows = 9000;

  // Datasets of many kinds; `user_block` as MATLAB has one.
  void write_source(hsize_t user_block = 0) const {
    const Hdf5Lock lock;
    const Handle creation(H5Pcreate(H5P_FILE_CREATE));
    H5Pset_userblock(creation.get(), user_block);
    const Handle file(H5Fcreate(from_.c_str(), H5F_ACC_TRUNC, creation.get(), H5P_DEFAULT));
    std::vector<Record> records(kRows);
    std::vector<float> frames(50 * 40 * 30);
    for (size_t r = 0; r < kRows; ++r) {
      records[r] = {static_cast<double>(r) / 7, {}, {'a', static_cast<char>('b' + r % 20), 0, 0, 0}};
      for (size_t c = 0; c < 16; ++c) records[r].emg[c] = static_cast<float>(r * 31 + c);
    }
    for (size_t i = 0; i < frames.size(); ++i) frames[i] = static_cast<float>(i * 2654435761u % 1000003);
    const hsize_t channels = 16;
    const Handle emg(H5Tarray_create2(H5T_IEEE_F32LE, 1, &channels)), label(H5Tcopy(H5T_C_S1));
    H5Tset_size(label.get(), 5);
    const Handle record(H5Tcreate(H5T_COMPOUND, sizeof(Record)));
    H5Tinsert(record.get(), "time", 0, H5T_IEEE_F64LE);
    H5Tinsert(record.get(), "emg", offsetof(Record, emg), emg.get());
    H5Tinsert(record.get(), "label", offsetof(Record, label), label.get());
    write_dataset(file.get(), "/emg/records", record.get(), {kRows}, records, {206});
    write_dataset(file.get(), "/emg/packed", record.get(), {kRows}, records, {1000}, 4);
    write_dataset(file.get(), "/frames", H5T_IEEE_F32BE, {50, 40, 30}, frames, {1, 40, 7}, 2, H5T_NATIVE_FLOAT);
    write_dataset(file.get(), "/plain", H5T_IEEE_F32LE, {50, 1200}, frames);
    write_dataset(file.get(), "/small", H5T_STD_I32LE, {3}, std::vector<int32_t>{1, 2, 3}, {2});
    const Handle text(H5Tcopy(H5T_C_S1));
    H5Tset_size(text.get(), H5T_VARIABLE);
    write_dataset(file.get(), "/names", text.get(), {2}, std::vector<const char*>{"left", "right hand"});
    H5Lcreate_hard(file.get(), "/plain", file.get(), "/emg/same", H5P_DEFAULT, H5P_DEFAULT);
    H5Lcreate_soft("/small", file.get(), "/emg/soft", H5P_DEFAULT, H5P_DEFAULT);
    H5Lcreate_external("other.h5", "/x", file.get(), "/elsewhere", H5P_DEFAULT, H5P_DEFAULT);
    const Handle scalar(H5Screate(H5S_SCALAR));
    for (const char* object : {"/", "/emg", "/emg/records", "/small"}) {
      const Handle opened(H5Oopen(file.get(), object, H5P_DEFAULT));
      const Handle rate(H5Acreate2(opened.get(), "rate", H5T_IEEE_F64LE, scalar.get(), H5P_DEFAULT, H5P_DEFAULT));
      const double hertz = 2000.5;
      H5Awrite(rate.get(), H5T_NATIVE_DOUBLE, &hertz);
      const Handle note(H5Acreate2(opened.get(), "note", text.get(), scalar.get(), H5P_DEFAULT, H5P_DEFAULT));
      const char* words = "as the band sat";
      H5Awrite(note.get(), text.get(), &words);
    }
  }

  // The stored bytes of a whole dataset by H5Dread, without any conversion.
  static std::string raw(const std::string& path, const std::string& name) {
    const Hdf5Lock lock;
    const Handle file(H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT));
    const Handle dataset(H5Dopen2(file.get(), name.c_str(), H5P_DEFAULT));
    const Handle type(H5Dget_type(dataset.get())), space(H5Dget_space(dataset.get()));
    std::string bytes(H5Tget_size(type.get()) * static_cast<size_t>(H5Sget_simple_extent_npoints(space.get())), '\0');
    EXPECT_GE(H5Dread(dataset.get(), type.get(), H5S_ALL, H5S_ALL, H5P_DEFAULT, bytes.data()), 0) << name;
    return bytes;
  }

  void expect_the_same() const {
    for (const char* name : {"/emg/records", "/emg/packed", "/frames", "/plain", "/small", "/emg/same", "/emg/soft"})
      EXPECT_EQ(raw(from_, name), raw(to_, name)) << name;
    const Hdf5Lock lock;
    const Handle from(H5Fopen(from_.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT));
    const Handle to(H5Fopen(to_.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT));
    for (const char* object : {"/", "/emg", "/emg/records", "/small"}) {
      EXPECT_EQ(read_attribute(to.get(), object, "rate", to_).f64, 2000.5);
      EXPECT_STREQ(read_attribute(to.get(), object, "note", to_).string, "as the band sat");
    }
    for (const char* name : {"/emg/records", "/emg/packed", "/frames", "/plain", "/small", "/names"}) {
      const Handle a(H5Dopen2(from.get(), name, H5P_DEFAULT)), b(H5Dopen2(to.get(), name, H5P_DEFAULT));
      const Handle type_a(H5Dget_type(a.get())), type_b(H5Dget_type(b.get()));
      EXPECT_GT(H5Tequal(type_a.get(), type_b.get()), 0) << name;
    }
    H5O_info_t plain, same;
    H5Oget_info_by_name2(to.get(), "/plain", &plain, H5O_INFO_BASIC, H5P_DEFAULT);
    H5Oget_info_by_name2(to.get(), "/emg/same", &same, H5O_INFO_BASIC, H5P_DEFAULT);
    EXPECT_EQ(plain.addr, same.addr);
    char elsewhere[64] = "";
    EXPECT_GE(H5Lget_val(to.get(), "/elsewhere", elsewhere, sizeof elsewhere, H5P_DEFAULT), 0);
    const Handle names(H5Dopen2(to.get(), "/names", H5P_DEFAULT)), text(H5Tcopy(H5T_C_S1));
    H5Tset_size(text.get(), H5T_VARIABLE);
    char* words[2] = {};
    ASSERT_GE(H5Dread(names.get(), text.get(), H5S_ALL, H5S_ALL, H5P_DEFAULT, words), 0);
    EXPECT_STREQ(words[1], "right hand");
    for (char* word : words) H5free_memory(word);
  }

  std::map<std::string, SurveyedObject> objects() const {
    std::map<std::string, SurveyedObject> result;
    for (const InspectedDataset& dataset : inspect_file(to_, {}).datasets) result[dataset.object.name] = dataset.object;
    return result;
  }
  static void ignore(uint64_t, uint64_t) {}
  // The sentence of a file that is not written again.
  std::string refusal() const {
    try {
      rewrite_file(from_, to_, {}, ignore);
    } catch (const sdk::Error& problem) {
      return problem.what();
    }
    return "";
  }

  std::string from_, to_;
};

TEST_F(Rewriting, MakesUnfilteredDatasetsContiguous) {
  write_source();
  uint64_t last = 0, all = 0;
  const Rewritten result = rewrite_file(from_, to_, {}, [&](uint64_t done, uint64_t total) {
    EXPECT_GT(done, last);
    last = done, all = total;
  });
  EXPECT_EQ(last, all);
  EXPECT_EQ(result.rewritten, 2u);
  expect_the_same();
  auto layouts = objects();
  EXPECT_EQ(layouts["/emg/records"].layout, "contiguous");
  EXPECT_EQ(layouts["/emg/same"].layout, "contiguous");  // the first name of /plain
  EXPECT_EQ(layouts["/emg/packed"].chunk, (std::vector<uint64_t>{1000}));
  EXPECT_EQ(layouts["/frames"].chunk, (std::vector<uint64_t>{1, 40, 7}));
  EXPECT_EQ(layouts["/small"].layout, "chunked");
}

TEST_F(Rewriting, MakesEverythingContiguous) {
  write_source();
  EXPECT_EQ(rewrite_file(from_, to_, {.contiguous = true}, ignore).rewritten, 4u);
  expect_the_same();
  for (const auto& [name, object] : objects()) {
    if (name != "/small" && name != "/names") {
      EXPECT_EQ(object.layout, "contiguous") << name;
    }
  }
}

TEST_F(Rewriting, Compresses) {
  write_source();
  rewrite_file(from_, to_, {.deflate = 3, .shuffle = true}, ignore);
  expect_the_same();
  auto layouts = objects();
  for (const char* name : {"/emg/records", "/emg/packed", "/frames", "/emg/same"}) {
    const SurveyedObject& object = layouts[name];
    ASSERT_EQ(object.filters.size(), 2u) << name;
    EXPECT_EQ(object.filters[1].id, H5Z_FILTER_DEFLATE);
    EXPECT_LT(object.stored_bytes, object.raw_bytes) << name;
  }
}

TEST_F(Rewriting, ChunksAsAsked) {
  write_source();
  rewrite_file(from_, to_, {.chunk = {700}}, ignore);
  expect_the_same();
  auto layouts = objects();
  EXPECT_EQ(layouts["/emg/records"].chunk, (std::vector<uint64_t>{700}));
  EXPECT_EQ(layouts["/emg/records"].filters.size(), 0u);
  EXPECT_EQ(layouts["/emg/packed"].filters.size(), 2u);
  EXPECT_EQ(layouts["/frames"].chunk, (std::vector<uint64_t>{50, 40, 30}));
  rewrite_file(from_, to_, {.chunk = {2, 9, 30}, .deflate = 1}, ignore);
  expect_the_same();
  EXPECT_EQ(objects()["/frames"].chunk, (std::vector<uint64_t>{2, 9, 30}));
}

TEST_F(Rewriting, ExtentsOfAChunkAreForDatasetsWithAsManyAxes) {
  SurveyedObject object;
  object.name = "/x";
  object.layout = "contiguous";
  object.shape = {10000000, 8};
  object.element_bytes = 4;
  object.raw_bytes = 320000000;
  EXPECT_EQ(new_layout(object, {.chunk = {2, 9}}).value().chunk, (std::vector<uint64_t>{2, 8}));
  EXPECT_TRUE(new_layout(object, {.chunk = {2, 9, 30}}).value().chunk.empty()) << "contiguous, as without options";
  EXPECT_EQ(new_layout(object, {.chunk = {2, 9, 30}, .deflate = 1}).value().chunk, (std::vector<uint64_t>{32768, 8}));
  object.filters = {{H5Z_FILTER_DEFLATE, "deflate", true}};
  EXPECT_FALSE(new_layout(object, {.chunk = {2, 9, 30}})) << "as it is, as without options";
}

TEST_F(Rewriting, KeepsMatlabsBlock) {
  write_source(512);
  std::string bytes = read_text(from_);
  bytes.replace(0, 21, "MATLAB 7.3 MAT-file, ");
  write_text(from_, bytes);
  rewrite_file(from_, to_, {.contiguous = true}, ignore);
  expect_the_same();
  EXPECT_EQ(read_text(to_).substr(0, 512), bytes.substr(0, 512));
  EXPECT_EQ(inspect_file(to_, {}).user_block_bytes, 512u);
}

constexpr const char* leads_nowhere =
    " holds references to other objects, which would lead nowhere in a copy; rewrite this file with h5repack";

TEST_F(Rewriting, ReferencesAreRefused) {
  {
    const Hdf5Lock lock;
    const Handle file = create_file(from_);
    write_dataset(file.get(), "x", H5T_STD_I32LE, {2}, std::vector<int32_t>{1, 2});
    hobj_ref_t reference{};
    H5Rcreate(&reference, file.get(), "/x", H5R_OBJECT, -1);
    write_dataset(file.get(), "cell", H5T_STD_REF_OBJ, {1}, std::vector<hobj_ref_t>{reference});
  }
  EXPECT_EQ(refusal(), "'/cell' of '" + from_ + "'" + leads_nowhere);
}

// As HDF5's dimension scales have them. The dataset is small, so libhdf5 copies it with its attributes.
TEST_F(Rewriting, ReferencesInAttributesAreRefused) {
  {
    const Hdf5Lock lock;
    const Handle file = create_file(from_);
    write_dataset(file.get(), "time", H5T_STD_I32LE, {2}, std::vector<int32_t>{1, 2});
    write_dataset(file.get(), "x", H5T_STD_I32LE, {2}, std::vector<int32_t>{1, 2});
    hobj_ref_t reference{};
    H5Rcreate(&reference, file.get(), "/time", H5R_OBJECT, -1);
    const Handle dataset(H5Dopen2(file.get(), "/x", H5P_DEFAULT)), scalar(H5Screate(H5S_SCALAR));
    const Handle scale(H5Acreate2(dataset.get(), "scale", H5T_STD_REF_OBJ, scalar.get(), H5P_DEFAULT, H5P_DEFAULT));
    ASSERT_GE(H5Awrite(scale.get(), H5T_STD_REF_OBJ, &reference), 0);
  }
  EXPECT_EQ(refusal(), "attribute 'scale' of '/x' of '" + from_ + "'" + leads_nowhere);
}

// The oldest format of files holds attributes of less than 64 KiB.
TEST_F(Rewriting, LargeAttributesStay) {
  const char* const objects[] = {"/", "/g", "/large", "/small"};
  const std::vector<int32_t> values(20000, 7);
  {
    const Hdf5Lock lock;
    const Handle access(H5Pcreate(H5P_FILE_ACCESS));
    H5Pset_libver_bounds(access.get(), H5F_LIBVER_V18, H5F_LIBVER_LATEST);
    const Handle file(H5Fcreate(from_.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, access.get()));
    const Handle group(H5Gcreate2(file.get(), "g", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    write_dataset(file.get(), "large", H5T_STD_I32LE, {values.size()}, values, {100});
    write_dataset(file.get(), "small", H5T_STD_I32LE, {2}, std::vector<int32_t>{1, 2});
    const hsize_t count = values.size();
    for (const char* object : objects) {
      const Handle opened(H5Oopen(file.get(), object, H5P_DEFAULT)), space(H5Screate_simple(1, &count, nullptr));
      const Handle table(H5Acreate2(opened.get(), "table", H5T_STD_I32LE, space.get(), H5P_DEFAULT, H5P_DEFAULT));
      ASSERT_GE(H5Awrite(table.get(), H5T_NATIVE_INT32, values.data()), 0) << object;
    }
  }
  ASSERT_EQ(refusal(), "");
  const Hdf5Lock lock;
  const Handle copy(H5Fopen(to_.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT));
  for (const char* object : objects) {
    const Handle table(H5Aopen_by_name(copy.get(), object, "table", H5P_DEFAULT, H5P_DEFAULT));
    std::vector<int32_t> found(values.size());
    ASSERT_GE(H5Aread(table.get(), H5T_NATIVE_INT32, found.data()), 0) << object;
    EXPECT_EQ(found, values) << object;
  }
}

TEST_F(Rewriting, DatasetsOfManyAxesStay) {
  const std::vector<hsize_t> shape(9, 2);
  std::vector<int32_t> values(512);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<int32_t>(i);
  {
    const Hdf5Lock lock;
    const Handle file = create_file(from_);
    write_dataset(file.get(), "x", H5T_STD_I32LE, shape, values);
  }
  ASSERT_EQ(refusal(), "");
  EXPECT_EQ(raw(to_, "/x"), raw(from_, "/x"));
}

TEST_F(Rewriting, NamesKeepTheirCharacterSet) {
  {
    const Hdf5Lock lock;
    const Handle utf8(H5Pcreate(H5P_LINK_CREATE)), of_attribute(H5Pcreate(H5P_ATTRIBUTE_CREATE));
    for (const Handle* properties : {&utf8, &of_attribute}) H5Pset_char_encoding(properties->get(), H5T_CSET_UTF8);
    const Handle file = create_file(from_), scalar(H5Screate(H5S_SCALAR));
    const Handle group(H5Gcreate2(file.get(), "h\xC3\xA4nde", utf8.get(), H5P_DEFAULT, H5P_DEFAULT));
    const Handle plain(H5Gcreate2(group.get(), "plain", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    H5Lcreate_soft("/nowhere", group.get(), "fu\xC3\x9F", utf8.get(), H5P_DEFAULT);
    const Handle note(
        H5Acreate2(group.get(), "l\xC3\xA4nge", H5T_IEEE_F64LE, scalar.get(), of_attribute.get(), H5P_DEFAULT));
    const double number = 2.5;
    ASSERT_GE(H5Awrite(note.get(), H5T_NATIVE_DOUBLE, &number), 0);
  }
  ASSERT_EQ(refusal(), "");
  const Hdf5Lock lock;
  const Handle copy(H5Fopen(to_.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT));
  const std::string group = "/h\xC3\xA4nde";
  for (const auto& [name, expected] :
       {std::pair(group, H5T_CSET_UTF8), {group + "/plain", H5T_CSET_ASCII}, {group + "/fu\xC3\x9F", H5T_CSET_UTF8}}) {
    H5L_info_t info;
    ASSERT_GE(H5Lget_info(copy.get(), name.c_str(), &info, H5P_DEFAULT), 0) << name;
    EXPECT_EQ(info.cset, expected) << name;
  }
  H5A_info_t info;
  ASSERT_GE(H5Aget_info_by_name(copy.get(), group.c_str(), "l\xC3\xA4nge", &info, H5P_DEFAULT), 0);
  EXPECT_EQ(info.cset, H5T_CSET_UTF8);
}

class RewritingElsewhere : public Rewriting {
 protected:
  void SetUp() override {
    Rewriting::SetUp();
    for (const char* name : {"in", "out"}) std::filesystem::create_directory(folder_ / name);
    from_ = (folder_ / "in" / "a.hdf5").string();
    to_ = (folder_ / "out" / "a.hdf5").string();
  }

  // The file that an external link of the copy names.
  std::string file_of(const char* link) const {
    const Hdf5Lock lock;
    const Handle file(H5Fopen(to_.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT));
    char value[1024] = "";
    const char *named = "", *object = "";
    unsigned flags = 0;
    EXPECT_GE(H5Lget_val(file.get(), link, value, sizeof value, H5P_DEFAULT), 0) << link;
    EXPECT_GE(H5Lunpack_elink_val(value, sizeof value, &flags, &named, &object), 0) << link;
    return named;
  }
};

TEST_F(RewritingElsewhere, ExternalLinksLeadWhereTheyLed) {
  {
    const Hdf5Lock lock;
    const Handle other = create_file((folder_ / "in" / "b.hdf5").string());
    write_dataset(other.get(), "x", H5T_STD_I32LE, {2}, std::vector<int32_t>{1, 2});
    const Handle file = create_file(from_);
    for (const auto& [target, link] : {std::pair("b.hdf5", "/near"), std::pair("/gone/b.hdf5", "/by_its_last_part"),
                                       std::pair("gone.hdf5", "/nowhere")}) {
      ASSERT_GE(H5Lcreate_external(target, "/x", file.get(), link, H5P_DEFAULT, H5P_DEFAULT), 0);
    }
  }
  ASSERT_EQ(refusal(), "");
  for (const char* link : {"/near", "/by_its_last_part"}) EXPECT_EQ(raw(to_, link), raw(from_, link)) << link;
  EXPECT_EQ(file_of("/nowhere"), "gone.hdf5");

  rewrite_file(from_, to_, {.tree = folder_ / "in"}, ignore);
  EXPECT_EQ(file_of("/near"), "b.hdf5") << "which is copied too";
}

TEST_F(RewritingElsewhere, StringsPutTogetherFromOtherFilesAreRefused) {
  {
    const Hdf5Lock lock;
    const Handle text(H5Tcopy(H5T_C_S1));
    H5Tset_size(text.get(), 4);
    const Handle other = create_file((folder_ / "in" / "b.hdf5").string());
    write_dataset(other.get(), "x", text.get(), {2}, std::vector<char>{'a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'});
    const Handle file = create_file(from_), creation(H5Pcreate(H5P_DATASET_CREATE));
    const hsize_t count = 2;
    const Handle space(H5Screate_simple(1, &count, nullptr));
    ASSERT_GE(H5Pset_virtual(creation.get(), space.get(), "b.hdf5", "/x", space.get()), 0);
    const Handle names(
        H5Dcreate2(file.get(), "names", text.get(), space.get(), H5P_DEFAULT, creation.get(), H5P_DEFAULT));
    ASSERT_TRUE(names);
  }
  EXPECT_EQ(refusal(), "'/names' of '" + from_ +
                           "' is put together from 'b.hdf5', which a copy in another folder would not find; write the "
                           "copy beside '" +
                           from_ + "'");
  to_ = (folder_ / "in" / "copy.hdf5").string();
  ASSERT_EQ(refusal(), "");
  EXPECT_EQ(raw(to_, "/names"), "abcdefgh");
}

TEST_F(Rewriting, TooLargeChunksAreRefused) {
  write_source();
  RewriteOptions options{.chunk = {5000000}};
  SurveyedObject object;
  object.name = "/x";
  object.layout = "contiguous";
  object.shape = {10000000, 8};
  object.element_bytes = 4;
  object.raw_bytes = 320000000;
  try {
    new_layout(object, options);
    FAIL();
  } catch (const sdk::Error& problem) {
    EXPECT_STREQ(problem.what(), "chunks [5000000, 8] of '/x' would have 152 MiB; at most 64 MiB: set a smaller chunk");
  }
}

}  // namespace
}  // namespace headroom
