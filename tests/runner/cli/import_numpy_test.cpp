// Arrays of numpy's.
#include "imports.hpp"

namespace headroom {
namespace {

TEST_F(Import, ArraysOfNumpy) {
  for (const std::string name : {"arrays.npz", "arrays_deflated.npz"}) {
    const Finished finished = convert({golden / name, "--out", name + ".hdf5"});
    EXPECT_EQ(finished.exit_code, 0) << finished.err;
    EXPECT_THAT(finished.err, HasSubstr("7 datasets, left out: labels (<U5), nothing (empty)"));
    const auto read = [&](const std::string& dataset_name) { return dataset(name + ".hdf5", dataset_name); };
    EXPECT_EQ(read("emg").type, "float32");
    EXPECT_EQ(read("emg").shape, (std::vector<hsize_t>{200, 3}));
    EXPECT_EQ(read("emg").values, counting(600));
    EXPECT_EQ(read("swapped").type, "float64");
    EXPECT_EQ(read("swapped").values, counting(40));
    EXPECT_EQ(read("columns").shape, (std::vector<hsize_t>{30, 2, 4}));
    EXPECT_EQ(read("columns").values, counting(240));
    EXPECT_EQ(read("half").type, "float32");
    EXPECT_EQ(read("half").values, counting(16));
    EXPECT_EQ(read("good").shape, (std::vector<hsize_t>{16}));
    EXPECT_EQ(read("index").type, "int64");
    EXPECT_EQ(read("index").values[39], 39);
    EXPECT_THAT(read("rate").values, ElementsAre(2000));
  }
  EXPECT_EQ(convert({golden / "columns.npy", "--out", "one.hdf5"}).exit_code, 0);
  EXPECT_EQ(dataset("one.hdf5", "array").values, counting(240));
}

TEST_F(Import, DamagedArraysAreSentences) {
  const std::string whole = read_text(golden / "arrays.npz"), deflated = read_text(golden / "arrays_deflated.npz");
  std::string bent = whole;
  bent[bent.find("NUMPY", bent.find("index.npy")) + 200] ^= 1;
  write_text(folder_ / "a.npz", bent);
  EXPECT_THAT(problem("a.npz", 4), HasSubstr("the checksum of its entry 'index.npy' is another"));
  bent = deflated;
  for (size_t i = 60; i < 90; ++i) bent[i] = static_cast<char>(bent[i] ^ 0x5A);
  write_text(folder_ / "a.npz", bent);
  EXPECT_THAT(problem("a.npz", 4), HasSubstr("emg.npy'"));
  write_text(folder_ / "a.npz", whole.substr(0, whole.size() - 200));
  EXPECT_THAT(problem("a.npz", 4), HasSubstr("is cut off or damaged"));
  write_text(folder_ / "a.npy", read_text(golden / "columns.npy").substr(0, 1000));
  EXPECT_THAT(problem("a.npy", 4), HasSubstr("is cut off"));
}

TEST_F(Import, HeadersOfNumpyThatAreNone) {
  const auto said = [&](const std::string& header) {
    const auto length = static_cast<uint16_t>(header.size());
    std::string file("\x93NUMPY\x01\x00", 8);
    file += {static_cast<char>(length & 0xFF), static_cast<char>(length >> 8)};
    write_text(folder_ / "a.npy", file + header + std::string(16, '\0'));
    return problem("a.npy", 4);
  };
  EXPECT_THAT(said("{'descr': '" + std::string(60'000, 'x') + "', 'fortran_order': False, 'shape': (1,), }\n"),
              HasSubstr("it has no array of numbers"));
  EXPECT_THAT(said("{'descr': '<f8', 'fortran_order': False, 'shape': (" + std::string(60'000, ' ')),
              HasSubstr("has no shape in its header"));
  EXPECT_THAT(said("{'descr': '<f8', 'fortran_order': False, 'shape': (x,), }\n"),
              HasSubstr("has a shape that cannot be read: (x,)"));
  EXPECT_THAT(said("{'descr': '<f8', 'fortran_order': False, 'shape': (3,), }\n"), HasSubstr("is cut off"));
  EXPECT_THAT(said("{'descr': '|u1', 'fortran_order': False, 'shape': (1, 1, 1, 1, 1, 1, 1, 1, 1), }\n"),
              HasSubstr("'array' has 9 axes; 1 to 8 can be written"));
}

}  // namespace
}  // namespace headroom
