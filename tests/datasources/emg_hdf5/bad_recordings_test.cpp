// What is wrong with recordings themselves, each with its sentence. Files that are no HDF5 at all are the host's
// (tests/runner/arrays).
#include <hdf5.h>
#include <limits>

#include "emg_source.hpp"

namespace headroom {
namespace {

class BadRecording : public TemporaryFolder {
 protected:
  std::string sentence(Exit code, const std::string& options = "") const {
    return sentence_of(folder_, code, [&] { open_emg(folder_, "window_size = 20\n" + options); });
  }

  // A dataset of `type` under /emg2pose/timeseries.
  void write_raw(hid_t type, const std::vector<hsize_t>& shape) const {
    const hid_t file = H5Fcreate((folder_ / "a.hdf5").c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    const hid_t group = H5Gcreate2(file, "emg2pose", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    const hid_t space = H5Screate_simple(static_cast<int>(shape.size()), shape.data(), nullptr);
    const hid_t dataset = H5Dcreate2(group, "timeseries", type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    ASSERT_GE(dataset, 0);
    for (const hid_t id : {dataset, space, group, file}) H5Idec_ref(id);
  }
  // Records of 64 bytes; `emg` and 2 joints.
  static hid_t records_with_emg(hid_t emg) {
    const hsize_t joints = 2;
    const hid_t type = H5Tcreate(H5T_COMPOUND, 64), angles = H5Tarray_create2(H5T_IEEE_F32LE, 1, &joints);
    H5Tinsert(type, "joint_angles", 0, angles);
    H5Tinsert(type, "emg", 8, emg);
    return type;
  }
};

TEST_F(BadRecording, FolderWithoutRecordings) {
  write_text(folder_ / "notes.txt", "");
  EXPECT_EQ(sentence(Exit::data), "[emg_hdf5] no recording (*.hdf5, *.h5) lies in DIR");
}

TEST_F(BadRecording, FolderThatIsNotThere) {
  const std::string text = sentence_of(folder_, Exit::data, [&] { open_emg(folder_ / "nowhere"); });
  EXPECT_THAT(text, testing::HasSubstr("DIR/nowhere"));
}

TEST_F(BadRecording, MissingMember) {
  write_recording(folder_ / "a.hdf5", {.has_emg = false});
  EXPECT_EQ(sentence(Exit::data),
            "[emg_hdf5] DIR/a.hdf5: /emg2pose/timeseries has no member 'emg'; its records hold time and joint_angles");
  write_recording(folder_ / "a.hdf5", {.has_angles = false});
  EXPECT_EQ(sentence(Exit::data),
            "[emg_hdf5] DIR/a.hdf5: /emg2pose/timeseries has no member 'joint_angles'; its records hold time and emg");
}

TEST_F(BadRecording, PlainArray) {
  write_raw(H5T_IEEE_F32LE, {30});
  EXPECT_EQ(sentence(Exit::data),
            "[emg_hdf5] DIR/a.hdf5: /emg2pose/timeseries is a plain array; records with the members time, joint_angles "
            "and emg are needed");
}

TEST_F(BadRecording, RecordsInTwoAxes) {
  const hsize_t channels = 4;
  write_raw(records_with_emg(H5Tarray_create2(H5T_IEEE_F32LE, 1, &channels)), {30, 2});
  EXPECT_EQ(sentence(Exit::data),
            "[emg_hdf5] DIR/a.hdf5: /emg2pose/timeseries has 2 axes; one is needed, a record for each sample");
}

TEST_F(BadRecording, MemberOfText) {
  const hid_t text = H5Tcopy(H5T_C_S1);
  H5Tset_size(text, 12);
  write_raw(records_with_emg(text), {30});
  EXPECT_EQ(sentence(Exit::data),
            "[emg_hdf5] DIR/a.hdf5: /emg2pose/timeseries has a member 'emg' that does not hold numbers; float32 or "
            "float64 is needed");
}

TEST_F(BadRecording, MemberOfTwoAxes) {
  const hsize_t shape[] = {2, 3};
  write_raw(records_with_emg(H5Tarray_create2(H5T_IEEE_F32LE, 2, shape)), {30});
  EXPECT_EQ(sentence(Exit::data),
            "[emg_hdf5] DIR/a.hdf5: /emg2pose/timeseries has a member 'emg' of 2 axes in a record; one axis is "
            "needed, with a value for each channel");
}

TEST_F(BadRecording, NoRecords) {
  const hsize_t channels = 4;
  write_raw(records_with_emg(H5Tarray_create2(H5T_IEEE_F32LE, 1, &channels)), {0});
  EXPECT_EQ(sentence(Exit::data), "[emg_hdf5] DIR/a.hdf5: /emg2pose/timeseries has no records");
}

TEST_F(BadRecording, GroupInPlaceOfTheDataset) {
  const hid_t file = H5Fcreate((folder_ / "a.hdf5").c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
  const hid_t outer = H5Gcreate2(file, "emg2pose", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
  const hid_t inner = H5Gcreate2(outer, "timeseries", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
  for (const hid_t id : {inner, outer, file}) H5Idec_ref(id);
  const std::string text = sentence(Exit::data);
  EXPECT_THAT(text, testing::AllOf(testing::HasSubstr("DIR/a.hdf5"), testing::HasSubstr("/emg2pose/timeseries"),
                                   testing::HasSubstr("group")));
}

TEST_F(BadRecording, WithoutAnyRate) {
  const hsize_t channels = 4;
  write_raw(records_with_emg(H5Tarray_create2(H5T_IEEE_F32LE, 1, &channels)), {30});
  EXPECT_EQ(sentence(Exit::data),
            "[emg_hdf5] DIR/a.hdf5: /emg2pose has no attribute 'sample_rate' and the time stamps do not tell it; write "
            "the attribute, in Hz");
}

TEST_F(BadRecording, RecordingsThatDiffer) {
  write_recording(folder_ / "a.hdf5", {});
  const auto with = [&](const RecordingSpec& spec) {
    write_recording(folder_ / "b.hdf5", spec);
    return sentence(Exit::bad_input);
  };
  const std::string end = "; keep recordings of one kind in a folder";
  EXPECT_EQ(with({.channels = 5}),
            "[emg_hdf5] recordings differ in EMG channels: 3 in DIR/a.hdf5, 5 in DIR/b.hdf5" + end);
  EXPECT_EQ(with({.joints = 4}), "[emg_hdf5] recordings differ in joints: 2 in DIR/a.hdf5, 4 in DIR/b.hdf5" + end);
  EXPECT_EQ(with({.sample_rate_hz = 250.0}),
            "[emg_hdf5] recordings differ in sample rate: 100 Hz in DIR/a.hdf5, 250 Hz in DIR/b.hdf5" + end);
  EXPECT_EQ(with({.angle_unit = "deg"}),
            "[emg_hdf5] recordings differ in the unit of joint_angles: 'rad' in DIR/a.hdf5, 'deg' in DIR/b.hdf5" + end);
}

TEST_F(BadRecording, NoWindowFits) {
  write_recording(folder_ / "a.hdf5", {.records = 15});
  write_recording(folder_ / "b.hdf5", {.records = 19});
  EXPECT_EQ(sentence(Exit::bad_input, "skip_ik_failures = false"),
            "[emg_hdf5] no window of 20 records fits into any of the 2 recordings of DIR: the longest has 19; lower "
            "window_size");
  write_recording(folder_ / "b.hdf5", {.records = 21, .edit = [](uint64_t r, auto& angles, auto&) {
                                         if (r == 9) angles = {0.0f, 0.0f};
                                       }});
  EXPECT_EQ(sentence(Exit::bad_input),
            "[emg_hdf5] no window of 20 records fits into any of the 2 recordings of DIR without an IK failure; "
            "lower window_size, or set skip_ik_failures = false");
}

TEST_F(BadRecording, OptionsThatDoNotFitTheRecordings) {
  write_recording(folder_ / "a.hdf5", {});
  EXPECT_EQ(sentence(Exit::bad_input, "channel_rotation = 3"),
            "[emg_hdf5] channel_rotation = 3; the recordings have 3 channels, so at most 2 is allowed");
  EXPECT_EQ(sentence(Exit::bad_input, "padding = [1]"),
            "[emg_hdf5] padding has 1 values; two are needed: records before and after the window");
}

TEST_F(BadRecording, NumbersThatAreNone) {
  constexpr float nan = std::numeric_limits<float>::quiet_NaN(), infinity = std::numeric_limits<float>::infinity();
  write_recording(folder_ / "a.hdf5", {.edit = [](uint64_t r, auto& angles, auto& emg) {
                    if (r == 30) emg[2] = nan;
                    if (r == 60) angles[1] = infinity;
                  }});
  const auto source = open_emg(folder_, "window_size = 20");
  const auto reading = [&](uint64_t index) {
    return sentence_of(folder_, Exit::data, [&] { read_sample(*source, index); });
  };
  EXPECT_EQ(reading(10), "");
  EXPECT_THAT(reading(11),
              testing::HasSubstr(
                  "DIR/a.hdf5: /emg2pose/timeseries: emg[2] of record 30 is NaN; mend the recording or take it out"));
  EXPECT_THAT(reading(41),
              testing::HasSubstr("DIR/a.hdf5: /emg2pose/timeseries: joint_angles[1] of record 60 is infinite"));
  EXPECT_EQ(reading(61), "");
}

TEST_F(BadRecording, RecordingThatShrinksUnderTheRun) {
  write_recording(folder_ / "a.hdf5", {});
  const auto source = open_emg(folder_, "window_size = 20");
  write_recording(folder_ / "a.hdf5", {.records = 50});
  const std::string text = sentence_of(folder_, Exit::data, [&] { read_sample(*source, 70); });
  EXPECT_THAT(text, testing::HasSubstr("DIR/a.hdf5"));
}

}  // namespace
}  // namespace headroom
