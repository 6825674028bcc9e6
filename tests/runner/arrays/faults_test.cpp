// What goes wrong between the plan and the read, and libhdf5 in a process that ends.

#include <fcntl.h>

#include "arrays/hdf5_child.hpp"
#include "arrays/hdf5_plan.hpp"
#include "h5_files.hpp"

namespace headroom {
namespace {

constexpr DLDataType f32{kDLFloat, 32, 1};

class Faults : public TemporaryFolder {
 protected:
  void SetUp() override {
    TemporaryFolder::SetUp();
    path_ = (folder_ / "a.h5").string();
    write_file(path_);
  }
  void TearDown() override {
    set_hdf5_child({});
    TemporaryFolder::TearDown();
  }

  static void write_file(const std::string& path) {
    const Hdf5Lock lock;
    const Handle file = create_file(path);
    write_dataset(file.get(), "x", H5T_IEEE_F32LE, {100}, std::vector<float>(100, 1.5f));
    write_dataset(file.get(), "z", H5T_IEEE_F32LE, {100}, std::vector<float>(100, 1.5f), {10}, 5);
  }

  std::string failure(OpenArray& array) const {
    float values[100];
    const hr_status status =
        array.status() == HR_OK ? array.read({0}, {100}, {{HR_WHOLE, f32, values, 0}}) : array.status();
    if (status == HR_OK) return "";
    std::string text = array.message();
    for (size_t at; (at = text.find(path_)) != std::string::npos;) text.replace(at, path_.size(), "FILE");
    return text;
  }

  void use_child(const std::string& script) {
    const auto program = folder_ / "child";
    write_text(program, "#!/bin/sh\n" + script + "\n");
    std::filesystem::permissions(program, std::filesystem::perms::owner_all);
    set_hdf5_child(program);
  }

  std::string path_;
};

constexpr const char* changed = "'FILE' was changed or replaced while it was in use; start the run again";

TEST_F(Faults, TheFileIsCutWhileItIsRead) {
  for (const char* name : {"x", "z"}) {
    write_file(path_);
    OpenArray array(path_, name);
    EXPECT_EQ(failure(array), "");
    std::filesystem::resize_file(path_, 3000);
    EXPECT_EQ(failure(array), changed);
    EXPECT_EQ(failure(array), changed) << "again";
  }
}

TEST_F(Faults, TheFileIsWrittenWhileItIsRead) {
  OpenArray array(path_, "z");
  EXPECT_EQ(failure(array), "");
  write_text(path_, read_text(path_));
  std::filesystem::last_write_time(path_, std::filesystem::file_time_type::clock::now() + std::chrono::hours(1));
  EXPECT_EQ(failure(array), changed);
  OpenArray again(path_, "x");  // the first still reads what was there before
  EXPECT_EQ(failure(again), changed);
}

TEST_F(Faults, TheFileVanishesBeforeItsFirstRead) {
  OpenArray array(path_, "x");
  std::filesystem::remove(path_);
  EXPECT_EQ(failure(array), "'FILE' vanished while it was in use; put it back and start the run again");
}

TEST_F(Faults, AFileOnceChangedIsPlannedAnew) {
  using namespace std::chrono_literals;
  const auto long_ago = std::filesystem::file_time_type::clock::now() - 1h;
  std::filesystem::last_write_time(path_, long_ago);
  const auto first = planned_array(path_, "/z").plan;
  const uint64_t id = first->id;
  EXPECT_EQ(planned_array(path_, "/z").plan->id, id) << "kept";
  std::filesystem::last_write_time(path_, long_ago + 1s);
  EXPECT_NE(planned_array(path_, "/z").plan->id, id);
}

TEST_F(Faults, AFileBehindItIsWrittenWhileItIsRead) {
  const std::string other = (folder_ / "b.h5").string(), raw = (folder_ / "raw").string();
  write_file(other);
  write_text(raw, std::string(400, '\0'));
  {
    const Hdf5Lock lock;
    const Handle file = create_file(path_);
    H5Lcreate_external("b.h5", "/x", file.get(), "linked", H5P_DEFAULT, H5P_DEFAULT);
    const hsize_t count = 100;
    const Handle space(H5Screate_simple(1, &count, nullptr));
    const auto create = [&](const char* name, const Handle& storage) {
      const Handle dataset(
          H5Dcreate2(file.get(), name, H5T_IEEE_F32LE, space.get(), H5P_DEFAULT, storage.get(), H5P_DEFAULT));
      ASSERT_TRUE(dataset) << name;
    };
    const Handle put_together(H5Pcreate(H5P_DATASET_CREATE)), outside(H5Pcreate(H5P_DATASET_CREATE));
    H5Pset_virtual(put_together.get(), space.get(), "b.h5", "/x", space.get());
    create("virtual", put_together);
    H5Pset_external(outside.get(), raw.c_str(), 0, 400);
    create("external", outside);
  }
  auto time = std::filesystem::file_time_type::clock::now();
  for (const auto& [name, behind] : {std::pair("linked", other), {"virtual", other}, {"external", raw}}) {
    OpenArray array(path_, name);
    EXPECT_EQ(failure(array), "") << name;
    std::filesystem::last_write_time(behind, time += std::chrono::hours(1));
    EXPECT_EQ(failure(array), "'" + behind + "' was changed or replaced while it was in use; start the run again")
        << name;
  }
  for (const char* name : {"linked", "virtual", "external"}) {
    OpenArray array(path_, name);
    EXPECT_EQ(failure(array), "") << name << ", planned anew";
  }
}

TEST_F(Faults, LibraryCrashes) {
  use_child("kill -SEGV $$");
  {
    OpenArray array(path_, "x");
    EXPECT_EQ(array.status(), HR_DATA_CORRUPT);
    EXPECT_EQ(failure(array),
              "'FILE' makes libhdf5 crash (SIGSEGV); the file is damaged: copy it again or leave it out");
  }
  set_hdf5_child({});
  OpenArray array(path_, "x");
  EXPECT_EQ(failure(array), "") << "the next question has another child";
}

TEST_F(Faults, LibraryIsEndedByOthers) {
  use_child("kill -KILL $$");
  OpenArray array(path_, "x");
  EXPECT_EQ(array.status(), HR_IO);
  EXPECT_EQ(failure(array),
            "the process that looks into 'FILE' was ended by SIGKILL; see whether memory ran out, and try again");
}

TEST_F(Faults, LibraryHangs) {
  use_child("kill -XCPU $$");
  OpenArray array(path_, "x");
  EXPECT_EQ(failure(array),
            "'FILE' keeps libhdf5 busy without end; the file is damaged: copy it again or leave it out");
}

TEST_F(Faults, WithoutAChildTheLibraryAnswersHere) {
  set_hdf5_child(folder_ / "nothing");
  for (const char* name : {"x", "z"}) {
    OpenArray array(path_, name);
    EXPECT_EQ(failure(array), "");
  }
  OpenArray none(path_, "y");
  EXPECT_EQ(failure(none), "'FILE' has no '/y'; group '/' holds datasets 'x' and 'z'");
}

TEST_F(Faults, ReadsThatFail) {
  char byte = 0;
  const Descriptor folder(::open(folder_.c_str(), O_RDONLY | O_DIRECTORY)), file(::open(path_.c_str(), O_RDONLY));
  const auto code = [&](int descriptor, uint64_t offset) {
    try {
      read_exactly(descriptor, offset, &byte, 1);
    } catch (const ReadFailure& failed) {
      return failed.code;
    }
    return -1;
  };
  EXPECT_EQ(code(folder.get(), 0), EISDIR);
  EXPECT_EQ(code(file.get(), 1 << 30), 0);
  EXPECT_EQ(code(file.get(), 0), -1);
}

}  // namespace
}  // namespace headroom
