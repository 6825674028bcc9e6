// What does not fit is one sentence: file, dataset, field, what was found, what is allowed.
#include <cmath>
#include <limits>

#include "hdf5_source.hpp"
#include "plugins/conformance.hpp"

namespace headroom {
namespace {

class BadLayouts : public Hdf5Folder {
 protected:
  void SetUp() override {
    Hdf5Folder::SetUp();
    hdf5_plugin();
    write("a.h5", 20, 3);
  }
  void write(const std::string& name, hsize_t rows, hsize_t width, hid_t type = H5T_IEEE_F64LE) const {
    const Hdf5Lock lock;
    const Handle file = create_file(folder_ / name);
    write_dataset(file.get(), "x", type, {rows, width}, counting<double>(rows * width), {}, 0, H5T_NATIVE_DOUBLE);
    write_dataset(file.get(), "g/label", H5T_STD_I64LE, {}, std::vector<int64_t>{4});
  }
  std::string says(const std::string& options, Exit* code = nullptr) const { return sentence(folder_, options, code); }
};

TEST_F(BadLayouts, Paths) {
  const std::string x = R"(fields = [ { name = "x", dataset = "x", length = 4 } ])";
  EXPECT_EQ(sentence(folder_ / "none", x),
            "[hdf5] DIR/none does not exist; path is a folder of HDF5 files, or one file");
  EXPECT_EQ(sentence(folder_ / "*.h5", x),
            "[hdf5] DIR/*.h5 does not exist; name the folder as path and give patterns as files = [\"*.hdf5\"]");
  EXPECT_EQ(says("files = [\"*.nc\"]\n" + x), "[hdf5] no file in DIR matches *.nc");
  EXPECT_EQ(says("groups = \"/data/*\"\n" + x),
            "[hdf5] DIR/a.h5 has no group that matches groups = \"/data/*\"; leave the file out, or mend the pattern");
}

TEST_F(BadLayouts, Options) {
  const auto field = [](const std::string& keys) {
    return "fields = [ { name = \"x\", dataset = \"x\"" + keys + " } ]";
  };
  EXPECT_EQ(says("fields = []"), "[hdf5] fields is empty; name at least one, with its dataset");
  EXPECT_EQ(says(field("")),
            "[hdf5] field 'x' takes a window of rows, but neither window_size nor its length is set; set one of them, "
            "or rows = \"row\" or \"all\"");
  EXPECT_EQ(says(field(", rows = \"row\", length = 2")),
            "[hdf5] field 'x' sets length with rows = \"row\"; a length belongs to rows = \"window\"");
  EXPECT_EQ(says(field(", rows = \"all\", pad = \"zeros\"")),
            "[hdf5] field 'x' sets pad or offset, but takes all rows; they belong to rows = \"window\" or \"row\"");
  EXPECT_EQ(says(field(", length = 2, pad_mask = \"m\"")),
            "[hdf5] field 'x' names a pad_mask, but pad = \"none\"; set pad = \"zeros\" or \"edge\", or "
            "lengths");
  EXPECT_EQ(says(field(", length = 2, pad = \"edge\", pad_mask = \"x\"")),
            "[hdf5] two fields have the name 'x'; give each its own");
  EXPECT_EQ(says("crop = [2]\n" + field(", length = 2")),
            "[hdf5] crop has 1 values for the 2 axes height and width; give one for each");
  EXPECT_EQ(says("crop = [2, 2]\n" + field(", length = 2")),
            "[hdf5] no field has an axis 'height' to crop; name the axes of fields with axes");
  EXPECT_EQ(says("crop = [4]\ncrop_axes = [\"w\"]\n" + field(", length = 2, axes = [\"t\", \"w\"]")),
            "[hdf5] field 'x': axis 'w' has 3 elements; a crop of 4 does not fit");
  EXPECT_EQ(says("crop = [4]\ncrop_axes = [\"t\"]\n" + field(", length = 2, axes = [\"t\", \"w\"]")),
            "[hdf5] field 'x': axis 't' counts rows; it cannot be cropped");
  EXPECT_EQ(says(field(", length = 2, axes = [\"a\", \"b\", \"c\"]")),
            "[hdf5] '/x' of DIR/a.h5 (field 'x'): a sample has 2 axes, axes names 3");
  EXPECT_EQ(says(field(", length = 2, normalize = true, channel_axis = 2")),
            "[hdf5] '/x' of DIR/a.h5 (field 'x'): a sample has 2 axes, channel_axis = 2 is none of them");
}

TEST_F(BadLayouts, Datasets) {
  Exit code{};
  EXPECT_EQ(says(R"(fields = [ { name = "y", dataset = "y", length = 4 } ])", &code),
            "[hdf5] field 'y': 'DIR/a.h5' has no '/y'; group '/' holds group 'g' and dataset 'x'");
  EXPECT_EQ(code, Exit::data);
  EXPECT_EQ(says(R"(fields = [ { name = "g", dataset = "g", length = 4 } ])"),
            "[hdf5] field 'g': '/g' of 'DIR/a.h5' is a group, not a dataset; it holds dataset 'label'");
  EXPECT_EQ(says(R"(fields = [ { name = "x", dataset = "x", member = "emg", length = 4 } ])"),
            "[hdf5] '/x' of DIR/a.h5 (field 'x') is a plain array without members; take out member = \"emg\"");
  EXPECT_EQ(says(R"(fields = [ { name = "x", dataset = "x", length = 4, axis = 2 } ])"),
            "[hdf5] '/x' of DIR/a.h5 (field 'x') has shape [20, 3] and no axis 2 to count rows along");
  EXPECT_EQ(says(R"(fields = [ { name = "x", dataset = "x", length = 4, dtype = "uint8" } ])"),
            "[hdf5] field 'x': '/x' of 'DIR/a.h5' is float64, which does not convert to uint8 without loss; ask for a "
            "float or a wider type");
  EXPECT_EQ(says(R"(fields = [ { name = "x", dataset = "x", attribute = "rate" } ])"),
            "[hdf5] '/x' of DIR/a.h5 (field 'x') has no attribute 'rate'");
  EXPECT_EQ(says(R"(fields = [ { name = "l", dataset = "g/label", rows = "all", normalize = true } ])"),
            "[hdf5] '/g/label' of DIR/a.h5 (field 'l'): a sample has 0 axes, which hold int64; only floats are "
            "normalised: set dtype = \"float32\", or normalize = false");
  EXPECT_EQ(says(R"(fields = [ { name = "x", dataset = "x", length = 21 } ])"),
            "[hdf5] none of the 1 sequences of DIR has the 21 rows that a sample needs; the longest has 20");
}

TEST_F(BadLayouts, RowsWithoutValues) {
  {
    const Hdf5Lock lock;
    const Handle file = create_file(folder_ / "a.h5");
    // libhdf5 takes no NULL for the values, though it reads none of them.
    const std::vector<double> none(1);
    write_dataset(file.get(), "object", H5T_IEEE_F64LE, {20, 0}, none);
    write_dataset(file.get(), "short", H5T_IEEE_F64LE, {0, 3}, none);
  }
  for (const std::string rows : {"rows = \"row\"", "length = 4", "rows = \"all\""}) {
    Exit code{};
    EXPECT_EQ(
        says("fields = [ { name = \"o\", dataset = \"object\", " + rows + " } ]", &code),
        "[hdf5] '/object' of DIR/a.h5 (field 'o') is empty: its shape is [20, 0]; take the field or the file out, "
        "or mend the file");
    EXPECT_EQ(code, Exit::data) << rows;
  }
  EXPECT_EQ(says(R"(fields = [ { name = "s", dataset = "short", rows = "row" } ])"),
            "[hdf5] none of the 1 sequences of DIR has the 1 rows that a sample needs; the longest has 0");
}

TEST_F(BadLayouts, AttributesThatAreNotFinite) {
  {
    const Hdf5Lock lock;
    const Handle file(H5Fopen((folder_ / "a.h5").c_str(), H5F_ACC_RDWR, H5P_DEFAULT));
    const Handle scalar(H5Screate(H5S_SCALAR));
    for (const auto& [name, number] : {std::pair("lost", std::nan("")), std::pair("huge", 1e300)}) {
      const Handle made(H5Acreate2(file.get(), name, H5T_IEEE_F64LE, scalar.get(), H5P_DEFAULT, H5P_DEFAULT));
      H5Awrite(made.get(), H5T_NATIVE_DOUBLE, &number);
    }
  }
  const auto fields = [](const std::string& name, const std::string& dtype) {
    return "fields = [ { name = \"n\", dataset = \"/\", attribute = \"" + name + "\", dtype = \"" + dtype + "\" } ]";
  };
  EXPECT_EQ(says(fields("lost", "float64")),
            "[hdf5] '/' of DIR/a.h5 (field 'n') has nan as attribute 'lost', which is NaN or infinite in float64; mend "
            "the data, or set check_finite = false");
  EXPECT_EQ(says(fields("huge", "auto")),
            "[hdf5] '/' of DIR/a.h5 (field 'n') has 1e+300 as attribute 'huge', which is NaN or infinite in float32; "
            "mend the data, or set check_finite = false");
  const auto source = open_hdf5(folder_, fields("huge", "float64"));
  EXPECT_EQ(values<double>(read_sample(*source, 0), "n")[0], 1e300);
  const auto unchecked = open_hdf5(folder_, "check_finite = false\n" + fields("lost", "float32"));
  EXPECT_TRUE(std::isnan(values<float>(read_sample(*unchecked, 0), "n")[0]));
}

TEST_F(BadLayouts, AttributesThatATypeDoesNotHold) {
  {
    const Hdf5Lock lock;
    const Handle file(H5Fopen((folder_ / "a.h5").c_str(), H5F_ACC_RDWR, H5P_DEFAULT));
    const Handle scalar(H5Screate(H5S_SCALAR));
    const double rate = 2.5;
    const int64_t count = 300;
    const Handle a(H5Acreate2(file.get(), "rate", H5T_IEEE_F64LE, scalar.get(), H5P_DEFAULT, H5P_DEFAULT));
    const Handle b(H5Acreate2(file.get(), "count", H5T_STD_I64LE, scalar.get(), H5P_DEFAULT, H5P_DEFAULT));
    H5Awrite(a.get(), H5T_NATIVE_DOUBLE, &rate);
    H5Awrite(b.get(), H5T_NATIVE_INT64, &count);
  }
  const auto field = [](const std::string& name, const std::string& dtype) {
    return "fields = [ { name = \"n\", dataset = \"/\", attribute = \"" + name + "\", dtype = \"" + dtype + "\" } ]";
  };
  EXPECT_EQ(
      says(field("rate", "int32")),
      "[hdf5] '/' of DIR/a.h5 (field 'n') has 2.5 as attribute 'rate', which int32 does not hold; ask for another "
      "dtype");
  EXPECT_EQ(says(field("count", "uint8")),
            "[hdf5] '/' of DIR/a.h5 (field 'n') has 300 as attribute 'count', which uint8 does not hold; ask for "
            "another dtype");
  const auto value = [&](const std::string& dtype) {
    return read_sample(*open_hdf5(folder_, field("count", dtype)), 0);
  };
  EXPECT_EQ(values<uint16_t>(value("uint16"), "n")[0], 300);
  EXPECT_EQ(values<int64_t>(value("auto"), "n")[0], 300);
  EXPECT_EQ(values<double>(value("float64"), "n")[0], 300.0);
}

TEST_F(BadLayouts, FilesThatDiffer) {
  const std::string x = R"(fields = [ { name = "x", dataset = "x", length = 4 } ])";
  write("b.h5", 9, 4);
  EXPECT_EQ(says(x),
            "[hdf5] '/x' of DIR/b.h5 (field 'x') has shape [9, 4], where DIR/a.h5 has shape [20, 3]; all sequences "
            "need the same: leave it out, or mend it");
  write("b.h5", 9, 3, H5T_STD_I16LE);
  EXPECT_EQ(says(x),
            "[hdf5] '/x' of DIR/b.h5 (field 'x') has int16, where DIR/a.h5 has float64; all sequences need the same: "
            "leave it out, or mend it");
  EXPECT_EQ(says(R"(fields = [ { name = "x", dataset = "x", length = 4, dtype = "float32" } ])"), "");
  std::ofstream(folder_ / "b.h5") << "no HDF5 at all";
  EXPECT_THAT(says(x), testing::HasSubstr("DIR/b.h5"));
  std::filesystem::remove(folder_ / "b.h5");
  write("b.h5", 2, 3);
  EXPECT_EQ(says(x), "");
}

TEST_F(BadLayouts, ValuesThatAreNotFinite) {
  for (const bool wide : {false, true}) {
    const Hdf5Lock lock;
    const Handle file = create_file(folder_ / "a.h5");
    auto data = counting<double>(60);
    data[37] = std::numeric_limits<double>::quiet_NaN();
    data[58] = -std::numeric_limits<double>::infinity();
    write_dataset(file.get(), "x", wide ? H5T_IEEE_F64LE : H5T_IEEE_F32LE, {20, 3}, data, {}, 0, H5T_NATIVE_DOUBLE);
  }
  for (const std::string dtype : {"auto", "float64"}) {
    const std::string field = R"(fields = [ { name = "x", dataset = "x", length = 4, dtype = ")" + dtype + "\" } ]";
    const auto source = open_hdf5(folder_, field);
    EXPECT_NO_THROW(read_sample(*source, 8));
    EXPECT_EQ(sentence_of([&] { read_sample(*source, 9); }),
              "[hdf5] '/x' of DIR/a.h5 (field 'x'), value 10 of the sample from row 9 is NaN or infinite; mend the "
              "data, or set check_finite = false");
    EXPECT_NO_THROW(read_sample(*source, 14));
    EXPECT_NE(sentence_of([&] { read_sample(*source, 16); }), "");
    EXPECT_NO_THROW(read_sample(*open_hdf5(folder_, "check_finite = false\n" + field), 9));
  }
}

TEST_F(BadLayouts, AFileThatChanges) {
  const auto source = open_hdf5(folder_, R"(fields = [ { name = "x", dataset = "x", length = 4 } ])");
  EXPECT_NO_THROW(read_sample(*source, 0));
  std::filesystem::remove(folder_ / "a.h5");
  write("a.h5", 7, 3);
  EXPECT_EQ(sentence_of([&] { read_sample(*source, 0); }),
            "[hdf5] DIR/a.h5 has changed since this run opened it; start the run again");
}

TEST(Conformance, OfThePlugin) {
  hdf5_plugin();
  for (const CheckResult& result : check_plugin(std::filesystem::path(HEADROOM_PLUGIN_DIR) / "hdf5.so"))
    EXPECT_NE(result.outcome, CheckResult::Outcome::fail) << result.name << ": " << result.sentence;
}

}  // namespace
}  // namespace headroom
