#include "recording.hpp"

#include <cmath>
#include <sstream>
#include <vector>

namespace emg_hdf5 {

namespace {

[[noreturn]] void bad_file(const std::filesystem::path& file, const std::string& sentence) {
  throw sdk::Error(HR_DATA_CORRUPT, file.string() + ": " + kDataset + " " + sentence);
}

// Values in one record of a member that must be a number or a row of numbers.
uint64_t width(const sdk::ArrayMember& member, const std::filesystem::path& file) {
  if (member.dtype.bits == 0) {
    bad_file(file, "has a member '" + member.name + "' that does not hold numbers; float32 or float64 is needed");
  }
  if (member.shape.size() > 1) {
    bad_file(file, "has a member '" + member.name + "' of " + std::to_string(member.shape.size()) +
                       " axes in a record; one axis is needed, with a value for each " +
                       (member.name == "emg" ? "channel" : "joint"));
  }
  return member.elements();
}

uint32_t find(const sdk::Array& array, const std::filesystem::path& file, const char* name) {
  if (const auto i = array.find_member(name)) return *i;
  std::vector<std::string> names;
  for (const sdk::ArrayMember& member : array.info().members) names.push_back(member.name);
  bad_file(file, std::string("has no member '") + name + "'; its records hold " + sdk::listing(names));
}

// "rad (mean interior angle)" is rad.
std::string unit_of(const sdk::Host& host, const std::filesystem::path& file, const char* attribute) {
  const auto value = host.attribute(file, kGroup, attribute);
  if (!value || value->type != HR_STRING) return "";
  return value->string.substr(0, value->string.find_first_of(" ,("));
}

double time_of(const TimeSeries& series, uint32_t member, uint64_t record) {
  double time = 0.0;
  const hr_array_target targets[] = {sdk::target(&time, member)};
  series.array.read_rows(record, 1, targets);
  return time;
}

// From the time stamps, which jitter: whole Hz.
double rate_from_time(const TimeSeries& series, const std::filesystem::path& file) {
  const auto time = series.array.find_member("time");
  const double seconds = time ? time_of(series, *time, series.records() - 1) - time_of(series, *time, 0) : 0.0;
  const double rate = seconds > 0.0 ? std::round(static_cast<double>(series.records() - 1) / seconds) : 0.0;
  if (!(rate >= 1.0) || !std::isfinite(rate)) {
    throw sdk::Error(HR_DATA_CORRUPT, file.string() + ": " + kGroup +
                                          " has no attribute 'sample_rate' and the time stamps do not tell it; "
                                          "write the attribute, in Hz");
  }
  return rate;
}

double sample_rate(const sdk::Host& host, const TimeSeries& series, const std::filesystem::path& file) {
  const auto value = host.attribute(file, kGroup, "sample_rate");
  if (!value) return rate_from_time(series, file);
  if (value->type == HR_STRING || !(value->f64 > 0.0) || !std::isfinite(value->f64)) {
    throw sdk::Error(HR_DATA_CORRUPT,
                     file.string() + ": attribute 'sample_rate' of " + kGroup + " must be a number of Hz above 0");
  }
  return value->f64;
}

// What is wrong with the dataset is wrong with the data, not with an option.
sdk::Array open_dataset(const sdk::Host& host, const std::filesystem::path& file) {
  try {
    return sdk::Array(host, file, kDataset);
  } catch (const sdk::Error& problem) {
    if (problem.status() != HR_INVALID_ARGUMENT) throw;
    throw sdk::Error(HR_DATA_CORRUPT, problem.what());
  }
}

}  // namespace

TimeSeries::TimeSeries(const sdk::Host& host, const std::filesystem::path& file) : array(open_dataset(host, file)) {
  const sdk::ArrayInfo& info = array.info();
  if (info.members.empty()) {
    bad_file(file, "is a plain array; records with the members time, joint_angles and emg are needed");
  }
  if (info.shape.size() != 1) {
    bad_file(file, "has " + std::to_string(info.shape.size()) + " axes; one is needed, a record for each sample");
  }
  emg = find(array, file, "emg");
  angles = find(array, file, "joint_angles");
  channels = width(info.members[emg], file);
  joints = width(info.members[angles], file);
  wide_angles = info.members[angles].dtype.bits == 64;
}

Description describe(const sdk::Host& host, const std::filesystem::path& file) {
  const TimeSeries series(host, file);
  if (series.records() == 0) bad_file(file, "has no records");
  Description result;
  result.recording = {file, file.stem().string(), series.records()};
  result.layout = {series.channels, series.joints, sample_rate(host, series, file), unit_of(host, file, "joint_units"),
                   unit_of(host, file, "emg_units")};
  if (result.layout.angle_unit.empty()) result.layout.angle_unit = "rad";
  return result;
}

void require_same(const Description& first, const Description& other) {
  const auto differ = [&](const std::string& what, const std::string& here, const std::string& there) {
    sdk::invalid("recordings differ in " + what + ": " + here + " in " + first.recording.file.string() + ", " + there +
                 " in " + other.recording.file.string() + "; keep recordings of one kind in a folder");
  };
  const Layout &a = first.layout, &b = other.layout;
  const auto hertz = [](double rate) { return (std::ostringstream() << rate << " Hz").str(); };
  if (a.channels != b.channels) differ("EMG channels", std::to_string(a.channels), std::to_string(b.channels));
  if (a.joints != b.joints) differ("joints", std::to_string(a.joints), std::to_string(b.joints));
  if (a.sample_rate_hz != b.sample_rate_hz) {
    differ("sample rate", hertz(a.sample_rate_hz), hertz(b.sample_rate_hz));
  }
  if (a.angle_unit != b.angle_unit)
    differ("the unit of joint_angles", "'" + a.angle_unit + "'", "'" + b.angle_unit + "'");
}

}  // namespace emg_hdf5
